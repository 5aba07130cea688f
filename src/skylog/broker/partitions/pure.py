"""Diskless partitions: any broker serves them, from the object store and the control plane.

Each operation becomes a question: one submission to the writer, one fetch, one request to the
coordinators for all diskless partitions of a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skylog.broker.partitions.diskless_errors import change_error, read_error
from skylog.broker.partitions.port import (
    NO_EPOCH,
    AppendOutcome,
    Budget,
    Deleted,
    EpochEnd,
    Found,
    Isolation,
    Reader,
    RefusedError,
)
from skylog.broker.partitions.questions import Question
from skylog.broker.tiered.diskless_offsets import OffsetWanted
from skylog.diskless.batch import CREATE_TIME, LOG_APPEND_TIME
from skylog.diskless.bulk import PlannedRange, RangeRequest
from skylog.diskless.plane import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsResult,
    TopicPartition,
)
from skylog.diskless.reader import ReadRequest, ReadResult
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.diskless.rules import ranges
from skylog.diskless.writer import Item
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import BULK_PLANNED_BATCHES_PER_CALL
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.batch import split_batches
from skylog.wire.buffers import chained
from skylog.wire.messages.fetch_response import PartitionData
from skylog.wire.records import find_record

if TYPE_CHECKING:
    import asyncio

    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.observe.traffic import Traffic
    from skylog.broker.tiered.diskless_offsets import TieredOffsets
    from skylog.broker.tiered.diskless_reads import DisklessReads
    from skylog.controller.image import ClusterImage, Delta
    from skylog.controller.image.topics import Topic
    from skylog.diskless.partitions import DisklessPartition
    from skylog.diskless.writer import Request as WriterRequest
    from skylog.log.producers import ProducerEntry, TransactionEnd
    from skylog.log.verification import Guard, Origin
    from skylog.routing.router import Router
    from skylog.wire.messages.fetch_request import FetchPartition
    from skylog.wire.validation import Validated

# How many batches a search by timestamp examines before it trusts the last one's metadata.
SEARCHED_BATCHES_MAX: Final = 8
_error_of: Final = attrgetter("error")
# Offsets that the coordinator knows, wherever the records are.
_OF_THE_LOG: Final = frozenset({LATEST, EARLIEST, EARLIEST_LOCAL})


class PurePartition:
    """One diskless partition as clients see it."""

    __slots__ = ("_home", "_state", "index", "place", "tiered", "topic")

    takes_transactions = False  # offsets are assigned at commit: no marker could follow
    log_start_offset = -1

    def __init__(self, home: PurePartitions, state: DisklessPartition) -> None:
        self._home = home
        self._state = state
        self.topic = state.topic
        self.index = state.index
        self.place = TopicIdPartition(state.topic_id, state.index)
        # Reads tiered segments; None if the topic has none.
        self.tiered: DisklessReads | None = None

    @property
    def leader_id(self) -> int:
        return self._state.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._state.leader_epoch

    def require_leader(self, client_epoch: int = NO_EPOCH) -> None:
        if self._state.deleted:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def require_reader(self, reader: Reader, client_epoch: int) -> None:
        if reader.is_follower:
            raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # it has no log

    # Writing

    def require_in_sync(self) -> None:
        """The store keeps its own copies."""

    def append(
        self, batch: Validated, origin: Origin, now_ms: int, *, acks_all: bool
    ) -> Question[AppendOutcome]:
        stamped = LOG_APPEND_TIME if batch.log_append_time >= 0 else CREATE_TIME
        item = Item(self.topic, self.place[0], self.index, batch.batch, stamped)
        return Question(self._home.write, item)

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    def end_transaction(self, end: TransactionEnd, now_ms: int) -> asyncio.Future[None] | None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def delete_before(self, offset: int) -> Question[Deleted]:
        return Question(self._home.delete, (*self.place, offset))

    # Reading

    def read(
        self, wanted: FetchPartition, reader: Reader, budget: Budget, *, is_new: bool
    ) -> PartitionData | Question[PartitionData]:
        near = self._home.nearer_replica(self.topic, self.index, reader) if reader.rack else None
        if near is not None:
            return PartitionData(
                self.index, high_watermark=-1, records=b"", preferred_read_replica=near
            )
        if self.tiered is not None:
            found = self.tiered.read(self.place, self._state, wanted, reader, budget)
            if found is not None:
                return found
        request = ReadRequest(*self.place, wanted.fetch_offset, wanted.partition_max_bytes)
        return Question(self._home.read, (request, reader))

    def expects_follower(self, replica_id: int, offset: int) -> bool:
        return False

    def offset_for(
        self, timestamp: int, isolation: Isolation, timeout_ms: int = 0
    ) -> Question[Found]:
        if self.tiered is not None and timestamp not in _OF_THE_LOG:
            wanted = OffsetWanted(self.place, timestamp, timeout_ms)
            return Question(self._home.list_tiered_offsets, wanted)
        return Question(self._home.list_offsets, (*self.place, timestamp))

    def epoch_end(self, epoch: int) -> Question[EpochEnd]:
        """Epochs never end on a diskless partition: no client ever sees a truncation."""
        return Question(self._home.end_epochs, (self.place, epoch))

    def active_producers(self) -> Sequence[ProducerEntry]:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def byte_size(self) -> Question[int]:
        return Question(self._home.byte_sizes, self.place)

    def plan(self, asked: RangeRequest, split_bytes: int) -> Question[PlannedRange]:
        return Question(self._home.plan, (asked, split_bytes))

    # Waiting

    def watch(self, watcher: Any, *, appends: bool = False) -> None:
        self._state.watch(watcher)

    def unwatch(self, watcher: Any) -> None:
        self._state.unwatch(watcher)


class TieredReading(NamedTuple):
    """What reads the tiered segments of partitions."""

    reads: DisklessReads
    offsets: TieredOffsets
    # Which topics have some.
    configs: Configs


class PurePartitions:
    """All diskless partitions, and the resolvers of their questions."""

    def __init__(
        self,
        engine: DisklessEngine,
        image: ClusterImage,
        router: Router,
        node_id: int,
        traffic: Traffic,
    ) -> None:
        self._engine = engine
        self._image = image
        self._router = router
        self._node_id = node_id
        self._traffic = traffic
        # None: there is no tiered storage.
        self._tiered: TieredReading | None = None

    def use_tiered(self, tiered: TieredReading) -> None:
        """Tiered storage is enabled."""
        self._tiered = tiered
        for state in self._engine.partitions:
            self._choose(state)

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        """Topics may have become remote."""
        if self._tiered is not None:
            for name in self._tiered.configs.changed_topics(delta):
                topic = image.topic(name)
                for state in () if topic is None else self._engine.partitions.of(topic.topic_id):
                    self._choose(state)

    def _choose(self, state: DisklessPartition) -> None:
        tiered = self._tiered
        if tiered is not None and state.served is not None:
            is_remote = tiered.configs.log_config(state.topic).remote
            state.served.tiered = tiered.reads if is_remote else None

    def find(self, topic: Topic, index: int) -> PurePartition:
        state = self._engine.partitions.get(topic.topic_id, index)
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        served = state.served
        if served is None:
            served = state.served = PurePartition(self, state)
            self._choose(state)
        return served  # type: ignore[no-any-return]

    def nearer_replica(self, name: str, index: int, reader: Reader) -> int | None:
        """A replica in the consumer's rack, if it names one and this broker is in another."""
        topic = self._image.topic(name)
        if topic is None:
            return None
        zone = self._router.zone(reader.client_id, reader.listener) or reader.rack
        return self._router.replica_in(topic, index, zone, self._node_id)

    def write(self, items: Sequence[Item], number: int) -> _Submitted:
        return _Submitted(self._engine.writer.submit(number, items), self._traffic)

    async def read(
        self, asked: Sequence[tuple[ReadRequest, Reader]], budget: Budget
    ) -> list[PartitionData | KafkaError]:
        requests = [request for request, _ in asked]
        try:
            results = await self._engine.fetch(requests, budget.left, min_one=budget.untouched)
        except KafkaError as error:
            return [read_error(error.code)] * len(asked)
        answers = [_answer(*one, result) for one, result in zip(asked, results, strict=True)]
        if self._tiered is not None and any(map(_error_of, results)):
            await self._tiered.reads.read_gone(asked, results, answers, budget)
        return answers

    async def list_offsets(self, asked: Sequence[tuple[Any, int, int]]) -> list[Found | KafkaError]:
        """Timestamps are resolved to the exact record, as in Kafka."""
        try:
            results = await self._engine.plane.list_offsets(asked)
        except KafkaError as error:
            return [read_error(error.code)] * len(asked)
        found: list[Found | KafkaError] = []
        for (topic_id, index, timestamp), result in zip(asked, results, strict=True):
            try:
                found.append(await self._found((topic_id, index), timestamp, result))
            except KafkaError as error:
                found.append(read_error(error.code))
        return found

    async def list_tiered_offsets(self, asked: Sequence[OffsetWanted]) -> list[Found | KafkaError]:
        assert self._tiered is not None  # noqa: S101 - its partitions are known by it
        return await self._tiered.offsets.list_offsets(asked, self._found)

    async def _found(
        self, place: TopicPartition, timestamp: int, result: ListOffsetsResult
    ) -> Found:
        if result.error is not ErrorCode.NONE:
            raise KafkaError(result.error)
        at, offset = await self._to_the_record(place, timestamp, result)
        return Found(at, offset, SERVED_EPOCH if offset >= 0 else -1)

    async def _to_the_record(
        self, place: TopicPartition, timestamp: int, result: ListOffsetsResult
    ) -> tuple[int, int]:
        if result.coordinate is None:
            return result.timestamp, result.offset
        plane, reader = self._engine.plane, self._engine.reader
        target = result.timestamp if timestamp == MAX_TIMESTAMP else timestamp
        start = (await plane.list_offsets([(*place, EARLIEST)]))[0].offset
        for _ in range(SEARCHED_BATCHES_MAX):
            coordinate = result.coordinate
            if coordinate is None:
                return -1, -1
            for batch in split_batches(await reader.read_batch(coordinate)):
                found = find_record(batch, target, max(start, 0))
                if found is not None:
                    offset, at = found
                    return at, offset
            # All matching records of this batch were deleted: the next one may have some.
            after = coordinate.stamp.last_offset + 1
            again = await plane.list_offsets([(*place, timestamp)], from_offset=after)
            result = again[0]
        return result.timestamp, result.offset

    async def end_epochs(
        self, asked: Sequence[tuple[TopicPartition, int]]
    ) -> list[EpochEnd | KafkaError]:
        try:
            infos = await self._engine.plane.log_info([place for place, _ in asked])
        except KafkaError as error:
            return [read_error(error.code)] * len(asked)
        return [
            read_error(info.error) if info.error else EpochEnd(epoch, info.high_watermark)
            for (_, epoch), info in zip(asked, infos, strict=True)
        ]

    async def delete(
        self, asked: Sequence[tuple[Any, int, int]], _seconds: float
    ) -> list[Deleted | KafkaError]:
        try:
            results = await self._engine.plane.delete_records(asked)
        except KafkaError as error:
            # Classic partitions of the same request have been cut already, and are answered for.
            return [KafkaError(change_error(error.code))] * len(asked)
        for (topic_id, index, _), result in zip(asked, results, strict=True):
            if result.error is ErrorCode.NONE:
                self._engine.records_deleted(topic_id, index, result.low_watermark)
        return [Deleted(result.low_watermark, change_error(result.error)) for result in results]

    async def byte_sizes(self, places: Sequence[TopicPartition]) -> list[int]:
        tiers = self._engine.bulk.tiers
        return [
            max(info.byte_size, 0) + (0 if tiers is None else tiers.byte_size(place))
            for place, info in zip(places, await self._engine.plane.log_info(places), strict=True)
        ]

    async def plan(self, asked: Sequence[tuple[RangeRequest, int]]) -> list[PlannedRange]:
        asked_ranges = [one for one, _ in asked]
        split_bytes = asked[0][1]
        if self._engine.bulk.tiers is not None:
            return await self._engine.bulk.tiers.plan(asked_ranges, split_bytes)
        found = await self._engine.plane.plan_ranges(
            asked_ranges, split_bytes, BULK_PLANNED_BATCHES_PER_CALL
        )
        return [
            PlannedRange(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
            if ranges.lacks_tiered(one, result)
            else result
            for one, result in zip(asked_ranges, found, strict=True)
        ]


def _answer(request: ReadRequest, reader: Reader, result: ReadResult) -> PartitionData | KafkaError:
    if result.error is not ErrorCode.NONE:
        return read_error(result.error)
    return PartitionData(
        request.partition,
        high_watermark=result.high_watermark,
        last_stable_offset=result.high_watermark,
        log_start_offset=result.log_start_offset,
        aborted_transactions=[] if reader.read_committed else None,
        records=chained(result.parts, result.size),
    )


class _Submitted:
    """A request's batches at the writer; those that get offsets are counted as traffic."""

    __slots__ = ("_request", "_traffic", "done", "waits")

    def __init__(self, request: WriterRequest, traffic: Traffic) -> None:
        self._request = request
        self._traffic = traffic
        self.done = request.done
        self.waits = request.waits

    def results(self) -> Sequence[AppendOutcome]:
        results = self._request.results()
        for item, result in zip(self._request.items, results, strict=True):
            if result.error is ErrorCode.NONE:
                self._traffic.produced(item.topic, item.batch)
        return results
