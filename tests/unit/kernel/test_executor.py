"""Threads and their shutdown."""

from __future__ import annotations

import asyncio
import threading

import pytest

from skylog.kernel import limits
from skylog.kernel.executor import ThreadExecutor


async def test_closing_waits_for_what_is_under_way() -> None:
    executor, done = ThreadExecutor(1, "test"), threading.Event()
    work = asyncio.ensure_future(executor.run(done.set))
    await asyncio.sleep(0)
    executor.close()
    assert done.is_set()
    await work


async def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "THREADS_END_SECONDS_MAX", 0.01)
    executor, released = ThreadExecutor(1, "test"), threading.Event()
    work = asyncio.ensure_future(executor.run(released.wait))
    await asyncio.sleep(0)
    executor.close()
    assert not work.done()
    released.set()
    assert await work
