"""What a broker does unasked: each task has its own pace, and a failure waits for the next turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from skylog.kernel.logging import get_logger

log = get_logger("broker.background")
Work = Callable[[], Awaitable[object]]


class Background:
    """Runs work again and again until it is stopped."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}

    def every(
        self, interval_ms: int, name: str, work: Work, *, first_ms: int | None = None
    ) -> None:
        """Run ``work`` now and then; the interval counts from its end."""
        wait_ms = interval_ms if first_ms is None else first_ms
        self._tasks[asyncio.ensure_future(self._loop(interval_ms, wait_ms, name, work))] = None

    def once(self, name: str, work: Work) -> None:
        """Run ``work`` now, beside everything else."""
        task = asyncio.ensure_future(self._try(name, work))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*tuple(self._tasks), return_exceptions=True)
        self._tasks.clear()

    async def _loop(self, interval_ms: int, first_ms: int, name: str, work: Work) -> None:
        await asyncio.sleep(first_ms / 1000)
        while True:
            await self._try(name, work)
            await asyncio.sleep(interval_ms / 1000)

    @staticmethod
    async def _try(name: str, work: Work) -> None:
        try:
            await work()
        except Exception:
            log.exception("background work failed", work=name)
