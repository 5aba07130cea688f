"""File operations outside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from skylog.kernel.executor import Executor

T = TypeVar("T")


class Threads:
    """Tracks running work: cancelling a caller does not stop it."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._jobs: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[], T]) -> T:
        job = asyncio.ensure_future(self._executor.run(work))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return await asyncio.shield(job)

    async def settled(self) -> None:
        """Wait until no work is running."""
        await asyncio.gather(*self._jobs, return_exceptions=True)
