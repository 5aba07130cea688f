"""A coordinator over logs in memory, and partitions that record their markers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode
from skylog.transactions.coordinator import TransactionCoordinator
from skylog.transactions.markers import RETRY_MS
from skylog.transactions.ports import TopicPartition
from skylog.transactions.settings import TransactionSettings
from skylog.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from skylog.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.unit.replicated.support import LaggingLog, ManualTimers

NODE, OTHER = 1, 2
TIMEOUT_MS = 60_000


@dataclass(frozen=True)
class Marker:
    """The markers of one partition."""

    partition: TopicPartition
    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int
    version: int


def told(marker: WritableTxnMarker) -> list[Marker]:
    return [
        Marker(
            (topic.name, index),
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


@dataclass
class Partitions:
    """Implements ``MarkerSender``; fails by script."""

    markers: list[Marker] = field(default_factory=list)
    requests: list[tuple[int, WriteTxnMarkersRequest]] = field(default_factory=list)
    # The partitions' errors, until they are removed.
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    # Whether the network fails: before the request arrives, or on the way back.
    lost: str = ""
    # Requests wait while this is not set.
    open: asyncio.Event = field(default_factory=asyncio.Event)
    on_marker: Callable[[Marker], None] = lambda marker: None
    # The latest coordinator epoch that each partition knows, for each producer.
    terms: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open.set()

    async def send(self, node_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        await self.open.wait()
        self.requests.append((node_id, request))
        if self.lost == "request":
            raise ConnectionError("not sent")
        response = WriteTxnMarkersResponse([self._write(marker) for marker in request.markers])
        if self.lost == "response":
            raise ConnectionError("no answer")
        return response

    def _write(self, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
        topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
        for one in told(marker):
            code = self.errors.get(one.partition, ErrorCode.NONE)
            term = self.terms.setdefault((one.partition, one.producer_id), one.coordinator_epoch)
            if one.coordinator_epoch < term:
                code = ErrorCode.TRANSACTION_COORDINATOR_FENCED
            if code is ErrorCode.NONE:
                self.terms[one.partition, one.producer_id] = one.coordinator_epoch
                self.on_marker(one)
                self.markers.append(one)
            name, index = one.partition
            topics.setdefault(name, []).append(WritableTxnMarkerPartitionResult(index, code))
        results = [WritableTxnMarkerTopicResult(name, found) for name, found in topics.items()]
        return WritableTxnMarkerResult(marker.producer_id, results)


class Shell:
    """A coordinator of one partition, in its first term."""

    def __init__(self, *, lagging: bool = False) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.partitions = Partitions()
        # Partitions that other nodes lead; None for deleted ones.
        self.leaders: dict[TopicPartition, int | None] = {}
        self.version = 2
        self.log = LaggingLog() if lagging else SyncedLog()
        self.term = 0
        self._ids = count(1000)
        self.coordinator = self._new()

    def _new(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            TransactionSettings(topic_partitions=1, add_wait_ms_max=30_000),
            self.clock,
            version=lambda: self.version,
            new_producer_id=self._next_id,
            leader_of=lambda partition: self.leaders.get(partition, NODE),
            sender=self.partitions,
            timers=self.timers,
        )

    async def _next_id(self) -> int:
        return next(self._ids)

    async def lead(self) -> TransactionCoordinator:
        self.term += 1
        self.coordinator.partition_led(0, self.log, self.term)
        await self.coordinator.loaded()
        await turn()
        return self.coordinator

    async def fail_over(self) -> TransactionCoordinator:
        """Another broker takes over with what was committed."""
        self.coordinator.partition_resigned(0)
        self.log.lose_tail()
        self.coordinator = self._new()
        return await self.lead()

    async def later(self, ms: int = RETRY_MS) -> None:
        self.timers.advance(ms)
        await turn()


class SyncedLog(LaggingLog):
    """A log with no followers to wait for."""

    def append(self, records: object) -> int:
        end = super().append(records)  # type: ignore[arg-type]
        self.commit()
        return end


async def turn() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
