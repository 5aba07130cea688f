"""Background tasks of a broker: each has its own interval; a failed one waits for the next turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from skylog.kernel.errors import KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks

log = get_logger("broker.background")
Work = Callable[[], Awaitable[object]]
RETRY_SECONDS = 0.2
SETTLED_SECONDS_MAX = 10.0


class Background:
    """Runs work repeatedly until it is stopped."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._once: set[asyncio.Task[None]] = set()

    def every(
        self, interval_ms: int, name: str, work: Work, *, first_ms: int | None = None
    ) -> None:
        """Run ``work`` periodically; the interval counts from its end."""
        wait_ms = interval_ms if first_ms is None else first_ms
        self._tasks[asyncio.ensure_future(self._loop(interval_ms, wait_ms, name, work))] = None

    def once(self, name: str, work: Work) -> None:
        """Run ``work`` now, concurrently with everything else."""
        task = asyncio.ensure_future(self._try(name, work))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def until_done(self, name: str, work: Work) -> None:
        """Run ``work`` now, and again after a while each time it fails."""
        task = asyncio.ensure_future(self._retry(name, work))
        self._once.add(task)
        task.add_done_callback(self._once.discard)

    async def settled(self) -> None:
        """Wait for the work of ``until_done``, but not for long."""
        if self._once:
            await asyncio.wait(tuple(self._once), timeout=SETTLED_SECONDS_MAX)

    async def stop(self) -> None:
        await end_tasks([*self._tasks, *self._once])
        self._tasks.clear()

    async def _retry(self, name: str, work: Work) -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - any error: retried
                expected = isinstance(error, KafkaError) and error.retriable
                tell = log.debug if expected else log.warning
                tell("background work failed; it will be retried", work=name, why=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

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
