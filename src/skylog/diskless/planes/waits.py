"""Learns of commits at coordinators led elsewhere, by one outstanding long poll with each.

A poll covers all partitions of its coordinator, so that a fetch which waits here costs nothing
there. After a leader change, or a lost connection, the response names all partitions: no commit is
missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from skylog.diskless.coordinator.calls import CoordinatorCalls
from skylog.diskless.coordinator.wire import failure
from skylog.diskless.plane import HighWatermarkListener
from skylog.kernel.errors import KafkaError
from skylog.kernel.limits import DISKLESS_WAIT_MS
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.kernel.waiting import end_tasks
from skylog.wire.messages.diskless_find_batches_request import DisklessFindBatchesRequest

_log = get_logger("diskless.waits")
_RETRY_SECONDS: Final = 0.05
_RETRY_SECONDS_MAX: Final = 1.0
_EVERYTHING: Final = -1


class RemoteWaits:
    """All calls come from the event loop."""

    def __init__(
        self,
        calls: CoordinatorCalls,
        elsewhere: Callable[[], dict[int, int]],
        tell: HighWatermarkListener,
        rng: Random,
        wait_ms: int = DISKLESS_WAIT_MS,
    ) -> None:
        """``elsewhere``: the coordinators led by other brokers, and by which."""
        self._calls = calls
        self._elsewhere = elsewhere
        self._tell = tell
        self._rng = rng
        self._wait_ms = wait_ms
        self._waits: dict[tuple[int, int], asyncio.Task[None]] = {}

    def leaders_changed(self) -> None:
        """Poll the current leaders, and no other broker."""
        wanted = set(self._elsewhere().items())
        for at in self._waits.keys() - wanted:
            self._waits.pop(at).cancel()
        for at in wanted - self._waits.keys():
            self._waits[at] = asyncio.get_running_loop().create_task(self._wait(*at))

    async def close(self) -> None:
        waits, self._waits = self._waits, {}
        await end_tasks(waits.values())

    async def _wait(self, coordinator_id: int, node_id: int) -> None:
        since, delay = _EVERYTHING, _RETRY_SECONDS
        while True:
            try:
                since = await self._wait_once(coordinator_id, node_id, since)
                delay = _RETRY_SECONDS
            except KafkaError as error:
                _log.debug("waiting for commits failed", coordinator=coordinator_id, why=str(error))
                since = _EVERYTHING
                await asyncio.sleep(delay * (0.5 + self._rng.random()))
                delay = min(delay * 2, _RETRY_SECONDS_MAX)

    async def _wait_once(self, coordinator_id: int, node_id: int, since: int) -> int:
        request = DisklessFindBatchesRequest(
            wait_ms=self._wait_ms,
            coordinator_id=coordinator_id,
            since=since,
            timeout_ms=self._wait_ms * 2,
        )
        response = await self._calls.send(
            node_id,
            [coordinator_id],
            request,
            lane=f"wait-{coordinator_id}",
            timeout_ms=self._wait_ms,
        )
        if response.error_code:
            raise failure(response.error_code)
        for topic in response.topics:
            for one in topic.partitions:
                self._tell((topic.topic_id, one.partition_index), one.high_watermark)
        until: int = response.until
        return until
