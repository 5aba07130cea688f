"""Files and directories that are removed from disk a while after they were discarded."""

from __future__ import annotations

import heapq
import shutil
from functools import partial
from pathlib import Path

from skylog.kernel.clock import Clock
from skylog.kernel.executor import Executor


class Discarded:
    """A queue by due time."""

    def __init__(self, clock: Clock, executor: Executor) -> None:
        self._clock = clock
        self._executor = executor
        # (when due, path)
        self._waiting: list[tuple[int, str]] = []

    def add(self, path: str, delay_ms: int) -> None:
        heapq.heappush(self._waiting, (self._clock.now_ms() + delay_ms, path))

    async def remove_due(self) -> None:
        """Remove what is due."""
        while self._waiting and self._waiting[0][0] <= self._clock.now_ms():
            _, path = heapq.heappop(self._waiting)
            await self._executor.run(partial(_remove_tree, path))


def _remove_tree(path: str) -> None:
    if Path(path).is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        Path(path).unlink(missing_ok=True)
