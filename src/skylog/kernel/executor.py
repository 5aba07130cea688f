"""The only way to use threads: blocking work goes through an ``Executor``; a simulator forbids
it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Protocol, TypeVar

from skylog.kernel import limits
from skylog.kernel.logging import get_logger

_log = get_logger("executor")
T = TypeVar("T")


class Executor(Protocol):
    """Runs a blocking function and awaits its result."""

    async def run(self, work: Callable[[], T]) -> T: ...


class InlineExecutor:
    """Runs the work synchronously, on the caller's thread: deterministic."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()


class ThreadExecutor:
    """A bounded pool of threads."""

    def __init__(self, threads: int, name: str) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Wait for what is under way, unless a disk or a server does not let it go."""
        end = Thread(target=self._pool.shutdown, name="end of threads", daemon=True)
        end.start()
        end.join(limits.THREADS_END_SECONDS_MAX)
        if end.is_alive():
            _log.error("threads do not end", name=self._name)
