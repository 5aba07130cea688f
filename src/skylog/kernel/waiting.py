"""Waiting for what may not happen in time."""

from __future__ import annotations

import asyncio
from typing import Any


async def done_within(future: asyncio.Future[Any], seconds: float) -> None:
    """Until it is done or the time is up; the future is left alone.

    ``asyncio.wait`` does the same at several times the price.
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
