"""A third kind of partition, to test the port: a log up to a boundary, a remote store from there.

Everything is in memory. Below the boundary it answers at once; above it each call counts as a
request, and ``calls`` records the number of partitions in each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from skylog.broker.partitions.port import (
    Appended,
    Budget,
    Deleted,
    EpochEnd,
    Found,
    Isolation,
    Reader,
    ServedPartition,
    ServedPartitions,
)
from skylog.broker.partitions.questions import Question
from skylog.controller.image.topics import Topic
from skylog.diskless.bulk import FROM_LOG_START, PlannedRange, PlannedSplit, RangeRequest
from skylog.diskless.plane import EARLIEST, LATEST
from skylog.diskless.regions import Region, Source, source_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.verification import Origin
from skylog.wire.batch import Batch, patch_offset
from skylog.wire.messages.fetch_request import FetchPartition
from skylog.wire.messages.fetch_response import PartitionData
from skylog.wire.validation import Validated

NONE = ErrorCode.NONE


class Submitted:
    """Batches above the boundary are written at once, but answered one turn of the loop later."""

    waits = False

    def __init__(self, appended: list[Appended]) -> None:
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = loop.create_future()
        loop.call_soon(self.done.set_result, None)
        self._appended = appended

    def results(self) -> list[Appended]:
        return self._appended


class BoundedPartition:
    """Every batch has one record."""

    takes_transactions = False
    leader_id = 1
    leader_epoch = 7

    def __init__(self, home: BoundedPartitions, topic: str, index: int) -> None:
        self._home = home
        self.topic = topic
        self.index = index
        self.log_start_offset = 0
        self.batches: list[Batch] = []
        self._watchers: dict[Any, None] = {}

    @property
    def end(self) -> int:
        return len(self.batches)

    def _source(self, offset: int) -> Source:
        prefix = Region(self.log_start_offset, self._home.boundary)
        return source_of(offset, ((Source.LOCAL, prefix),), self.end)

    def require_leader(self, client_epoch: int = -1) -> None:
        if client_epoch not in (-1, self.leader_epoch):
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)

    def require_reader(self, reader: Reader, client_epoch: int) -> None:
        self.require_leader(client_epoch)

    def require_in_sync(self) -> None: ...

    def append(self, batch: Validated, origin: Origin, now_ms: int, *, acks_all: bool) -> Any:
        if self.end < self._home.boundary:
            return self.put(batch.batch)
        return Question(self._home.write, (self, batch.batch))

    def put(self, batch: Batch) -> Appended:
        offset = self.end
        copied = bytearray(batch.buffer)
        patch_offset(copied, offset, self.leader_epoch)
        self.batches.append(Batch(copied))
        for watcher in tuple(self._watchers):
            watcher.partition_moved(len(copied))
        return Appended(NONE, offset, -1, self.log_start_offset)

    def start_verification(self, *_: Any, **__: Any) -> None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    def end_transaction(self, *_: Any) -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def active_producers(self) -> list[Any]:
        return []

    def delete_before(self, offset: int) -> Any:
        target = self.end if offset < 0 else offset
        if target > self._home.boundary:
            return Question(self._home.delete, (self, target))
        self.log_start_offset = target
        return Deleted(target)

    def read(self, wanted: FetchPartition, reader: Reader, budget: Budget, *, is_new: bool) -> Any:
        offset = wanted.fetch_offset
        if not self.log_start_offset <= offset <= self.end:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if self._source(offset) is Source.WAL:
            return Question(self._home.read, (self, offset))
        return self.answer(offset, min(self._home.boundary, self.end))

    def answer(self, offset: int, end: int) -> PartitionData:
        records = b"".join(bytes(one.buffer) for one in self.batches[offset:end])
        return PartitionData(
            self.index,
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=self.log_start_offset,
            records=records,
        )

    def expects_follower(self, replica_id: int, offset: int) -> bool:
        return False

    def offset_for(self, timestamp: int, isolation: Isolation, timeout_ms: int = 0) -> Any:
        if timestamp == LATEST:
            return Found(-1, self.end, self.leader_epoch)
        if timestamp == EARLIEST:
            return Found(-1, self.log_start_offset, self.leader_epoch)
        return Question(self._home.search, (self, timestamp))

    def epoch_end(self, epoch: int) -> Any:
        if epoch < self.leader_epoch:
            return EpochEnd(epoch, self._home.boundary)
        return Question(self._home.end_epochs, self)

    def byte_size(self) -> Any:
        return Question(self._home.sizes, self)

    def plan(self, asked: RangeRequest, split_bytes: int) -> Question[PlannedRange]:
        return Question(self._home.plan, (self, asked))

    def watch(self, watcher: Any, *, appends: bool = False) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: Any) -> None:
        self._watchers.pop(watcher, None)


class BoundedPartitions:
    """Serves the given topics; ``others`` serves the rest."""

    def __init__(self, others: ServedPartitions, topics: set[str], boundary: int) -> None:
        self._others = others
        self._topics = topics
        self.boundary = boundary
        self.partitions: dict[tuple[str, int], BoundedPartition] = {}
        self.calls: list[tuple[str, int]] = []

    def find(self, topic: Topic, index: int) -> ServedPartition:
        if topic.name not in self._topics:
            return self._others.find(topic, index)
        place = topic.name, index
        if place not in self.partitions:
            self.partitions[place] = BoundedPartition(self, *place)
        return self.partitions[place]

    def write(self, asked: Sequence[tuple[BoundedPartition, Batch]], number: int) -> Submitted:
        self.calls.append(("write", len(asked)))
        return Submitted([partition.put(batch) for partition, batch in asked])

    async def read(
        self, asked: Sequence[tuple[BoundedPartition, int]], budget: Budget
    ) -> list[PartitionData]:
        self.calls.append(("read", len(asked)))
        return [partition.answer(offset, partition.end) for partition, offset in asked]

    async def delete(
        self, asked: Sequence[tuple[BoundedPartition, int]], seconds: float
    ) -> list[Deleted]:
        self.calls.append(("delete", len(asked)))
        for partition, offset in asked:
            partition.log_start_offset = offset
        return [Deleted(offset) for _, offset in asked]

    async def search(
        self, asked: Sequence[tuple[BoundedPartition, int]]
    ) -> list[Found | KafkaError]:
        self.calls.append(("search", len(asked)))
        return [
            next(
                (
                    Found(one.max_timestamp, one.base_offset, 7)
                    for one in partition.batches
                    if one.max_timestamp >= timestamp
                ),
                KafkaError(ErrorCode.KAFKA_STORAGE_ERROR),
            )
            for partition, timestamp in asked
        ]

    async def end_epochs(self, asked: Sequence[BoundedPartition]) -> list[EpochEnd]:
        self.calls.append(("end_epochs", len(asked)))
        return [EpochEnd(7, partition.end) for partition in asked]

    async def sizes(self, asked: Sequence[BoundedPartition]) -> list[int]:
        return [sum(one.size for one in partition.batches) for partition in asked]

    async def plan(
        self, asked: Sequence[tuple[BoundedPartition, RangeRequest]]
    ) -> list[PlannedRange]:
        """A page for each region: a split never crosses the boundary."""
        self.calls.append(("plan", len(asked)))
        return [self._planned(*one) for one in asked]

    def _planned(self, partition: BoundedPartition, asked: RangeRequest) -> PlannedRange:
        start, end = asked.start_offset, partition.end
        if start == FROM_LOG_START:
            start = partition.log_start_offset
        until = min(self.boundary, end) if start < self.boundary else end
        split = PlannedSplit(start, until, (until - start) * 100)
        return PlannedRange(NONE, [split], until, end, 0, partition.log_start_offset, end)
