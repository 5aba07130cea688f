"""Classic partitions: a replica with its own log, led or followed here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from skylog.broker.partitions import splits
from skylog.broker.partitions.blocking import BlockingReads, fill, with_aborted
from skylog.broker.partitions.port import (
    NO_EPOCH,
    Appended,
    Budget,
    Deleted,
    EpochEnd,
    Found,
    Isolation,
    Reader,
)
from skylog.broker.partitions.questions import Question
from skylog.broker.partitions.replicating import Replicating, until_deleted
from skylog.broker.tiered.reads import RemoteSearch
from skylog.diskless.bulk import PlannedRange, RangeRequest
from skylog.diskless.plane import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.settings.replication import RACK_AWARE_SELECTOR
from skylog.log.files import WouldBlock
from skylog.replication.leader import find_divergence
from skylog.wire.messages.fetch_response import EpochEndOffset, PartitionData

if TYPE_CHECKING:
    from skylog.broker.observe.traffic import Traffic
    from skylog.broker.tiered.reads import RemoteReads
    from skylog.controller.image import ClusterImage
    from skylog.controller.image.topics import Topic
    from skylog.kernel.executor import Executor
    from skylog.kernel.settings import BrokerSettings
    from skylog.log.producers import ProducerEntry, TransactionEnd
    from skylog.log.verification import Guard, Origin
    from skylog.replication.manager import ReplicaManager
    from skylog.replication.partition import Partition
    from skylog.replication.throttle import ReplicationQuota
    from skylog.wire.messages.fetch_request import FetchPartition
    from skylog.wire.validation import Validated

T = TypeVar("T")

_HIGH_WATERMARK: Final = -1
_NOTHING: Final = Found()


class ClassicPartition:
    """One replica as clients see it."""

    __slots__ = ("_home", "index", "replica", "topic")

    takes_transactions = True

    def __init__(self, home: ClassicPartitions, replica: Partition) -> None:
        self._home = home
        self.replica = replica
        self.topic = replica.topic
        self.index = replica.index

    @property
    def leader_id(self) -> int:
        return self.replica.leader_id

    @property
    def leader_epoch(self) -> int:
        return self.replica.leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self.replica.log.log_start_offset

    def require_leader(self, client_epoch: int = NO_EPOCH) -> None:
        replica = self.replica
        if replica.deleted:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if client_epoch != NO_EPOCH:
            self._require_epoch(client_epoch)
        if replica.leader_id != replica.node_id or replica.held:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def require_reader(self, reader: Reader, client_epoch: int) -> None:
        if not reader.anywhere or self.replica.held:
            self.require_leader(client_epoch)
        elif client_epoch != NO_EPOCH:
            self._require_epoch(client_epoch)
        if reader.is_follower and not self.replica.has_follower(reader.replica_id):
            unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(unknown if client_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def _require_epoch(self, client_epoch: int) -> None:
        if client_epoch < self.replica.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if client_epoch > self.replica.leader_epoch:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # Writing

    def require_in_sync(self) -> None:
        if not self.replica.enough_in_sync:
            self.replica.require_in_sync()

    def append(
        self, batch: Validated, origin: Origin, now_ms: int, *, acks_all: bool
    ) -> Appended | Question[Appended]:
        replica, records = self.replica, batch.batch
        info = replica.append((records,), now_ms, origin, acks_all=acks_all)
        self._home.traffic.produced(self.topic, records)
        # Of a duplicate, Kafka keeps only the batch's latest time, and returns it for both time
        # types.
        stamped = info.max_timestamp if info.duplicate else batch.log_append_time
        appended = Appended(ErrorCode.NONE, info.first_offset, stamped, info.log_start_offset)
        wait = replica.committed(info.last_offset) if acks_all else None
        return appended if wait is None else Question(Replicating, (appended, wait))

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        return self.replica.log.appender.start_verification(
            producer_id, sequence, epoch, epoch_grows=epoch_grows, now_ms=now_ms
        )

    def end_transaction(self, end: TransactionEnd, now_ms: int) -> asyncio.Future[None] | None:
        info = self.replica.append_marker(end, now_ms)
        return self.replica.committed(info.last_offset)

    def delete_before(self, offset: int) -> Deleted | Question[Deleted]:
        replica = self.replica
        end = replica.log.high_watermark
        target = end if offset == _HIGH_WATERMARK else offset
        if target < 0 or target > end:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        start = replica.delete_records_before(target)
        deleted = Deleted(replica.low_watermark)
        wait = replica.deleted_everywhere(start)
        return deleted if wait is None else Question(until_deleted, (replica, deleted, wait))

    # Reading

    def read(
        self, wanted: FetchPartition, reader: Reader, budget: Budget, *, is_new: bool
    ) -> PartitionData | Question[PartitionData]:
        log = self.replica.log
        offset = wanted.fetch_offset
        is_remote = log.log_start_offset <= offset < log.local_log_start_offset
        if budget.held and not is_remote:
            return Question(self._home.blocking.read_in_turn, (self, wanted, reader, is_new, None))
        diverging = find_divergence(log, offset, max(wanted.last_fetched_epoch, -1))
        if reader.is_follower and is_new and diverging is None:
            self._hear_follower(wanted, reader)
        answer = PartitionData(
            self.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if reader.read_committed else None,
            records=b"",
        )
        if diverging is not None:
            answer.diverging_epoch = EpochEndOffset(*diverging)
            return answer
        limit = log.log_end_offset
        if reader.is_follower:
            if is_remote:
                answer.error_code = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
            if is_remote or self._is_throttled(reader.replica_id):
                return answer
        else:
            near = self._nearer_replica(offset, reader) if reader.rack else None
            if near is not None:
                answer.preferred_read_replica = near
                return answer
            limit = log.last_stable_offset if reader.read_committed else log.high_watermark
        if is_remote:
            return self._read_remote(wanted, reader, budget, answer)
        return self._read_local(wanted, reader, budget, answer, limit)

    def _read_local(
        self,
        wanted: FetchPartition,
        reader: Reader,
        budget: Budget,
        answer: PartitionData,
        limit: int,
    ) -> PartitionData | Question[PartitionData]:
        log, offset = self.replica.log, wanted.fetch_offset
        size = min(wanted.partition_max_bytes, budget.left)
        if size < 0 and log.log_start_offset <= offset < limit:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        how = log.reader.read_committed if reader.read_committed else log.reader.read
        try:
            found = how(offset, size, limit, min_one=budget.untouched, block=False)
        except WouldBlock:
            cold = partial(how, offset, size, limit, min_one=budget.untouched, block=True)
            asked = (self, wanted, reader, False, partial(fill, answer, cold))
            return Question(self._home.blocking.read_in_turn, asked, holds=True)
        answer.records = found.buffer
        return with_aborted(answer, found) if found.aborted else answer

    def _read_remote(
        self, wanted: FetchPartition, reader: Reader, budget: Budget, answer: PartitionData
    ) -> PartitionData | Question[PartitionData]:
        remote = self._home.remote
        if remote is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "tiered storage is not enabled here")

        def read_on(offset: int) -> PartitionData | Question[PartitionData]:
            local = copy(wanted)
            local.fetch_offset = offset
            return self.read_late(local, reader, Budget(wanted.partition_max_bytes), is_new=False)

        return remote.read(self.replica, wanted, reader, budget, answer, read_on)

    def read_late(
        self, wanted: FetchPartition, reader: Reader, budget: Budget, *, is_new: bool
    ) -> PartitionData | Question[PartitionData]:
        """The same after a wait, in which it may have been deleted, or led elsewhere."""
        if self.replica.deleted:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.require_reader(reader, wanted.current_leader_epoch)
        return self.read(wanted, reader, budget, is_new=is_new)

    def _hear_follower(self, wanted: FetchPartition, reader: Reader) -> None:
        """A follower's fetch offset says what it has."""
        offset, log = wanted.fetch_offset, self.replica.log
        if log.local_log_start_offset <= offset <= log.log_end_offset:
            self.replica.fetched_by(
                reader.replica_id, offset, wanted.log_start_offset, reader.broker_epoch
            )

    def expects_follower(self, replica_id: int, offset: int) -> bool:
        """Not only if there are records: a follower out of sync may join the ISR once it has caught
        up, or once its broker is active again."""
        return self.replica.log.log_end_offset > offset or replica_id not in self.replica.isr

    def _is_throttled(self, replica_id: int) -> bool:
        """Whether a follower must wait for records; an in-sync follower never does."""
        quota = self._home.leader_quota
        return (
            replica_id not in self.replica.isr
            and quota.is_throttled(self.topic, self.index)
            and quota.exceeded
        )

    def _nearer_replica(self, offset: int, reader: Reader) -> int | None:
        """A follower in the consumer's rack that is in sync and has the offset (KIP-392).

        The leader decides. It serves consumers in its own rack itself.
        """
        home, leader = self._home, self.replica.leader
        if leader is None or not home.chooses_by_rack or home.rack == reader.rack:
            return None
        near = [
            each
            for each in leader.followers.values()
            if each.broker_id in leader.isr
            and each.start_offset <= offset <= each.end_offset
            and home.is_in(each.broker_id, reader)
        ]
        best = max(
            near, key=lambda one: (one.end_offset, one.caught_up_ms, one.broker_id), default=None
        )
        return None if best is None else best.broker_id

    def offset_for(
        self, timestamp: int, isolation: Isolation, timeout_ms: int = 0
    ) -> Found | Question[Found]:
        log = self.replica.log
        if isolation is Isolation.LOG_END:
            limit, is_late = log.log_end_offset, False
        else:
            committed = isolation is Isolation.COMMITTED
            limit = log.last_stable_offset if committed else log.high_watermark
            # A new leader does not know yet how far its predecessor had committed.
            is_late = self.replica.epoch_start_offset > limit
        search = self._search_late if is_late else self._search
        remote = self._home.remote
        if timestamp >= 0 and log.local_log_start_offset > log.log_start_offset and remote:
            local = partial(search, timestamp, limit, block=True)
            asked = RemoteSearch(self.replica, timestamp, limit, timeout_ms, local)
            return Question(remote.search, asked)
        try:
            return search(timestamp, limit, block=False)
        except WouldBlock:
            return Question(
                self._home.blocking.search, partial(search, timestamp, limit, block=True)
            )

    def _search(self, timestamp: int, limit: int, *, block: bool) -> Found:
        log = self.replica.log
        if timestamp == LATEST:
            return Found(-1, limit, self.replica.leader_epoch)
        if timestamp == EARLIEST:
            return Found(-1, log.log_start_offset, log.epoch_of(log.log_start_offset))
        if timestamp == EARLIEST_LOCAL:
            return Found(-1, log.local_log_start_offset, log.epoch_of(log.local_log_start_offset))
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            is_last = timestamp == LATEST_TIERED
            offset = log.highest_remote_offset if is_last else log.pending_upload_offset
            return Found(-1, offset, log.epoch_of(offset)) if 0 <= offset < limit else _NOTHING
        if timestamp == MAX_TIMESTAMP:
            found = log.reader.max_timestamp_offset(block=block)
        else:
            found = log.reader.offset_for_timestamp(timestamp, block=block)
        # A record that may still be lost must not be returned.
        return Found(*found) if found is not None and found[1] < limit else _NOTHING

    def _search_late(self, timestamp: int, limit: int, *, block: bool) -> Found:
        """What a leader may answer before its high watermark has reached its epoch."""
        found = _NOTHING if timestamp == LATEST else self._search(timestamp, limit, block=block)
        if found == _NOTHING and timestamp not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return found

    def epoch_end(self, epoch: int) -> EpochEnd:
        return EpochEnd(*self.replica.log.epoch_end_offset(epoch))

    def active_producers(self) -> Sequence[ProducerEntry]:
        return list(self.replica.log.producers)

    def byte_size(self) -> int:
        remote = self._home.remote
        return self.replica.log.size + (remote.byte_size(self.replica) if remote else 0)

    def plan(self, asked: RangeRequest, split_bytes: int) -> Question[PlannedRange]:
        remote = self._home.remote
        try:
            pieces = remote.pieces(self.replica, split_bytes) if remote else ()
        except KafkaError as error:
            failed = PlannedRange(error.code)
            return Question(self._home.blocking.search, lambda: failed)
        work = splits.planning(self.replica.log, asked, split_bytes, pieces)
        return Question(self._home.blocking.search, work)

    # Waiting

    def watch(self, watcher: Any, *, appends: bool = False) -> None:
        (self.replica.watch_appends if appends else self.replica.watch)(watcher)

    def unwatch(self, watcher: Any) -> None:
        self.replica.unwatch(watcher)


class ClassicPartitions:
    """All replicas of a broker, and the broker's parts that they use."""

    def __init__(
        self,
        replicas: ReplicaManager,
        image: ClusterImage,
        settings: BrokerSettings,
        leader_quota: ReplicationQuota,
        executor: Executor,
        traffic: Traffic,
    ) -> None:
        self._replicas = replicas
        self._image = image
        self.blocking = BlockingReads(executor)
        # None: no segments are in the object store.
        self.remote: RemoteReads | None = None
        self.leader_quota = leader_quota
        self.traffic = traffic
        self.rack = settings.node.rack
        self.chooses_by_rack = settings.replication.selector == RACK_AWARE_SELECTOR

    def find(self, topic: Topic, index: int) -> ClassicPartition:
        replica = self._replicas.get(topic.name, index)
        if replica is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        served = replica.served
        if served is None:
            served = replica.served = ClassicPartition(self, replica)
        return served  # type: ignore[no-any-return]

    def is_in(self, broker_id: int, reader: Reader) -> bool:
        """Whether that broker is in the reader's rack."""
        nodes = self._image.endpoints((broker_id,), reader.listener)
        return bool(nodes) and nodes[0].rack == reader.rack
