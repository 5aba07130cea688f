"""Waiting with a time-out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from skylog.kernel import limits
from skylog.kernel.logging import get_logger

_log = get_logger("waiting")


async def done_within(future: asyncio.Future[Any], seconds: float) -> None:
    """Wait until it is done or the time is up; the future is not cancelled.

    ``asyncio.wait`` does the same at several times the cost.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def end(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    timer = loop.call_later(seconds, end)
    future.add_done_callback(end)
    try:
        await over
    finally:
        timer.cancel()
        future.remove_done_callback(end)


async def end_tasks(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until they end. Their outcome does not matter.

    A task that does not end when cancelled is abandoned, so that closing never waits for ever.
    """
    cancelled = set(tasks)
    for task in cancelled:
        task.cancel()
    if not cancelled:
        return
    ended, left = await asyncio.wait(cancelled, timeout=limits.CANCELLED_SECONDS_MAX)
    for task in ended:
        if not task.cancelled():
            task.exception()  # mark it as retrieved
    for task in left:
        _log.warning("task did not end when cancelled", work=repr(task))


async def give_up_after(seconds: float, name: str, work: Coroutine[Any, Any, Any]) -> None:
    """Do a step of a shutdown; one that takes too long is cancelled, and its caller goes on."""
    step = asyncio.ensure_future(work)
    try:
        await asyncio.wait({step}, timeout=seconds)
    except asyncio.CancelledError:
        step.cancel()
        raise
    if step.done():
        step.result()
    else:
        _log.error("a step of the shutdown was given up", step=name, seconds=seconds)
        await end_tasks([step])


def all_done(futures: Sequence[asyncio.Future[Any]]) -> asyncio.Future[Any]:
    """Done once all of them are, whatever became of them."""
    if len(futures) == 1:
        return futures[0]
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(futures)

    def count(_: object) -> None:
        nonlocal left
        left -= 1
        if not left and not over.done():
            over.set_result(None)

    for future in futures:
        future.add_done_callback(count)
    return over
