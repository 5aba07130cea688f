"""Waiting with a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from skylog.kernel import limits
from skylog.kernel.waiting import done_within, end_tasks, give_up_after


async def test_ends_with_what_is_waited_for() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(done_within(future, 3600))
    await asyncio.sleep(0)
    assert not waiting.done()
    future.set_result(None)
    async with asyncio.timeout(30):
        await waiting
    async with asyncio.timeout(30):
        await done_within(future, 3600)  # it is done already


async def test_ends_when_the_time_is_up_and_leaves_the_future_alone() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(30):
        await done_within(future, 0.001)
    assert not future.done()
    future.set_result(None)


async def test_an_error_is_left_to_who_asks() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(ValueError())
    async with asyncio.timeout(30):
        await done_within(future, 3600)
    assert isinstance(future.exception(), ValueError)


async def test_a_waiter_that_is_cancelled_leaves_the_future_alone() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(done_within(future, 3600))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert not future.done()


async def never(started: asyncio.Event) -> None:
    """Does not end when it is cancelled, once."""
    while True:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if started.is_set():
                started.clear()
                continue
            raise


@pytest.fixture
async def stubborn() -> AsyncIterator[asyncio.Task[None]]:
    started = asyncio.Event()
    task = asyncio.ensure_future(never(started))
    await started.wait()
    yield task
    started.clear()
    task.cancel()
    await asyncio.wait({task})


async def test_cancelled_tasks_are_over_and_their_errors_of_no_interest() -> None:
    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError

    tasks = {asyncio.ensure_future(asyncio.Event().wait()), asyncio.ensure_future(fails())}
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await end_tasks(tasks)
        await end_tasks([])
    assert all(task.done() for task in tasks)


async def test_a_task_that_does_not_end_is_left_behind(
    stubborn: asyncio.Task[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CANCELLED_SECONDS_MAX", 0.01)
    async with asyncio.timeout(30):
        await end_tasks([stubborn])
    assert not stubborn.done()


async def test_a_step_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CANCELLED_SECONDS_MAX", 0.01)
    ended: list[str] = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async with asyncio.timeout(30):
        await give_up_after(0.01, "hangs", hangs())
    assert ended == ["cancelled"]


async def test_what_a_step_raises_is_told() -> None:
    async def fails() -> None:
        raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        await give_up_after(30, "fails", fails())
