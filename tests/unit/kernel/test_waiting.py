"""Waiting for what may not happen in time."""

from __future__ import annotations

import asyncio

from skylog.kernel.waiting import done_within


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
