"""The only door to threads: blocking work goes through an ``Executor``; a simulator forbids it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs a blocking function and awaits its result."""

    async def run(self, work: Callable[[], T]) -> T: ...


class InlineExecutor:
    """Runs the work at once, on the caller's thread: deterministic."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()


class ThreadExecutor:
    """A bounded pool of threads."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
