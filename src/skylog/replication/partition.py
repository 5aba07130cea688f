"""One partition on this broker: its log, its role in the cluster, and its high watermark.

A partition without other replicas has no ``Leader``: appended records are committed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError, invariant
from skylog.kernel.ids import Uuid
from skylog.log.fetched import FetchedBatches, covers, parts_within
from skylog.log.markers import MARKER_BYTES
from skylog.log.verification import CLIENT, Origin
from skylog.replication.leader import Brokers, IsrAnswer, IsrChange, Leader
from skylog.replication.uncommitted import Uncommitted
from skylog.replication.watching import WatchedLog
from skylog.wire.batch import Batch

if TYPE_CHECKING:
    from skylog.kernel.clock import Clock
    from skylog.log.appender import AppendInfo
    from skylog.log.config import LogConfig
    from skylog.log.log import Log
    from skylog.log.producers import TransactionEnd


class PartitionState(Protocol):
    """A partition in the metadata log."""

    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def replicas(self) -> Sequence[int]: ...
    @property
    def isr(self) -> Sequence[int]: ...
    @property
    def adding_replicas(self) -> Sequence[int]: ...
    @property
    def removing_replicas(self) -> Sequence[int]: ...


class PartitionHost(Protocol):
    """What a partition needs of its broker."""

    @property
    def node_id(self) -> int: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def lag_ms_max(self) -> int: ...
    @property
    def brokers(self) -> Brokers: ...

    def broker_epoch(self) -> int: ...

    def alter_isr(self, partition: Partition, change: IsrChange) -> None:
        """Ask the controller; its response is passed to ``Partition.isr_answered``."""
        ...


class Partition(WatchedLog):
    """A replica of a partition. All methods run on the event loop."""

    __slots__ = (
        "_host",
        "_uncommitted",
        "deleted",
        "enough_in_sync",
        "held",
        "index",
        "isr",
        "leader",
        "leader_epoch",
        "leader_id",
        "node_id",
        "partition_epoch",
        "reassigning",
        "replicas",
        "served",
        "topic",
        "topic_id",
    )

    def __init__(self, host: PartitionHost, topic: str, index: int, topic_id: Uuid, log: Log):
        super().__init__(log)
        self._host = host
        self.node_id = host.node_id
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        self.reassigning = False
        self.deleted = False
        # Whether this leader waits to learn what of its log is in the object store.
        self.held = False
        # Set while this broker leads and there are other replicas.
        self.leader: Leader | None = None
        # Whether at least min.insync.replicas replicas are in sync.
        self.enough_in_sync = True
        self._uncommitted = Uncommitted()
        # The object that serves clients, created on first use; the replica does not use it.
        self.served: Any = None

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.node_id and not self.deleted

    def hold(self) -> None:
        """Refuse everybody until ``serve``: records may be lost, and no offset may be reused."""
        self.held = True

    def serve(self) -> None:
        self.held = False
        self._notify(0)

    def has_follower(self, node_id: int) -> bool:
        return node_id != self.node_id and node_id in self.replicas

    @property
    def epoch_start_offset(self) -> int:
        """The start of this leader's epoch; 0 if no other broker can have led."""
        return 0 if self.leader is None else self.leader.epoch_start_offset

    @property
    def min_in_sync(self) -> int:
        """min.insync.replicas, but not more than there are replicas."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    # -- metadata ------------------------------------------------------------------------------

    def update(self, state: PartitionState) -> None:
        """Apply the metadata of this partition."""
        if state.partition_epoch < self.partition_epoch:
            return  # the controller's response has already arrived
        leader_id, leader_epoch = state.leader, state.leader_epoch
        invariant(leader_epoch >= self.leader_epoch, f"{self}: leader epoch went back")
        was_leader = self.is_leader
        moved = (leader_id, leader_epoch) != (self.leader_id, self.leader_epoch)
        self.leader_id, self.leader_epoch = leader_id, leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas, self.isr = state.replicas, state.isr
        self.held = self.held and leader_id == self.node_id
        self.reassigning = bool(state.adding_replicas or state.removing_replicas)
        self._weigh_in_sync()
        if self.is_leader:
            self._lead(moved)
        else:
            self.leader = None
        if was_leader and not self.is_leader:
            self._fail_waiting(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if moved:
            self._notify(0)

    def _lead(self, moved: bool) -> None:
        log = self.log
        if moved:
            log.companions.assign_epoch(self.leader_epoch)
        if len(self.replicas) == 1:
            self.leader = None
        else:
            host = self._host
            if self.leader is None:
                self.leader = Leader(self.node_id, host.lag_ms_max, host.brokers)
            self.leader.lead(
                (self.leader_epoch, self.partition_epoch),
                self.replicas,
                self.isr,
                log.log_end_offset,
                host.clock.now_ms(),
            )
        self._advance_high_watermark()

    def _weigh_in_sync(self) -> None:
        self.enough_in_sync = len(self.isr) >= self.min_in_sync

    def configure(self, config: LogConfig) -> None:
        """The topic's settings changed."""
        self.log.configure(config)
        self._weigh_in_sync()
        if self.is_leader:
            self._advance_high_watermark()

    def mark_deleted(self) -> None:
        """The topic was deleted: wake all waiting callers."""
        self.deleted = True
        self.leader = None
        self.served = None
        self._fail_waiting(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        self._notify(0)

    # -- leading -------------------------------------------------------------------------------

    def require_in_sync(self) -> None:
        """NOT_ENOUGH_REPLICAS if a write that all replicas must have cannot be accepted."""
        if not self.enough_in_sync:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} of {self.min_in_sync} replicas of {self} are in sync",
            )

    def append(
        self,
        batches: Sequence[Batch],
        now_ms: int,
        origin: Origin = CLIENT,
        *,
        acks_all: bool = True,
    ) -> AppendInfo:
        """Append as the leader; after a KafkaError the log is unchanged."""
        self._check_append(acks_all)
        info = self.log.appender.append(batches, self.leader_epoch, now_ms, origin)
        if not info.duplicate and (self.leader is not None or self._watchers):
            self._appended(sum(batch.size for batch in batches))
        elif not info.duplicate:
            self._commit(self.log.log_end_offset)
        return info

    def append_marker(self, end: TransactionEnd, now_ms: int) -> AppendInfo:
        """End a transaction as the leader; after a KafkaError the log is unchanged."""
        self._check_append(acks_all=True)
        info = self.log.appender.append_marker(end, self.leader_epoch, now_ms)
        self._appended(MARKER_BYTES)
        # The whole transaction becomes readable for some consumers, however small its marker.
        self._notify(0)
        return info

    def _check_append(self, acks_all: bool) -> None:
        if self.leader_id != self.node_id or self.held:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks_all and not self.enough_in_sync:
            self.require_in_sync()
        if self.leader is not None:
            self._hear_quiet_followers(self.leader)

    def _appended(self, size: int) -> None:
        log = self.log
        if self.leader is None:
            self._commit(log.log_end_offset)
            if self._watchers:
                self._notify(size)
            return
        self._uncommitted.add(log.log_end_offset, size)
        for watcher in tuple(self._follower_watchers):
            watcher.partition_moved(size)
        self._advance_high_watermark()

    def _hear_quiet_followers(self, leader: Leader) -> None:
        """Followers in sessions do not name unchanged partitions: their fetches count anyway."""
        end_offset = self.log.log_end_offset
        for watcher in self._follower_watchers:
            leader.seen(watcher.replica_id, watcher.fetched_ms, end_offset)

    def fetched_by(self, replica: int, offset: int, start_offset: int, broker_epoch: int) -> None:
        """A follower fetches from ``offset``; NOT_LEADER_OR_FOLLOWER for an earlier incarnation."""
        leader, log, host = self.leader, self.log, self._host
        if leader is None or replica not in leader.followers:
            return
        now_ms = host.clock.now_ms()
        leader.fetched(replica, offset, start_offset, broker_epoch, log.log_end_offset, now_ms)
        change = leader.expansion(replica, log.high_watermark, host.broker_epoch())
        if change is not None:
            host.alter_isr(self, change)
        self._advance_high_watermark()
        if self._low_waiting:
            self._release_low_waiting(self.low_watermark)

    def shrink_isr(self) -> None:
        """Request an ISR without lagging replicas, if there are any."""
        leader, host = self.leader, self._host
        if leader is None:
            return
        self._hear_quiet_followers(leader)
        now_ms, end_offset = host.clock.now_ms(), self.log.log_end_offset
        change = leader.shrinkage(end_offset, now_ms, host.broker_epoch())
        if change is not None:
            host.alter_isr(self, change)

    def expand_isr(self) -> None:
        """Request an ISR with a caught-up follower that could not join when it fetched.

        Its broker may have been fenced then, and a fetch session does not repeat unchanged
        partitions.
        """
        leader, host = self.leader, self._host
        if leader is None or len(self.isr) == len(self.replicas):
            return
        oldest_ms = host.clock.now_ms() - host.lag_ms_max
        for watcher in self._follower_watchers:
            if watcher.fetched_ms < oldest_ms or watcher.replica_id not in leader.followers:
                continue
            change = leader.expansion(
                watcher.replica_id, self.log.high_watermark, host.broker_epoch()
            )
            if change is not None:
                host.alter_isr(self, change)
                return

    def isr_answered(self, change: IsrChange, answer: IsrAnswer | ErrorCode) -> bool:
        """The controller has answered; True if it must be asked again."""
        leader = self.leader
        if leader is None:
            return False
        again = leader.answered(change, answer)
        if leader.partition_epoch > self.partition_epoch:
            self.partition_epoch = leader.partition_epoch
            self.isr = tuple(node for node in self.replicas if node in leader.isr)
            self._weigh_in_sync()
            self.expand_isr()
        self._advance_high_watermark()
        return again

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start; returns the new one."""
        start = self.log.trimming.delete_records_before(offset)
        self._notify(0)
        return start

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all live replicas."""
        start = self.log.log_start_offset
        return start if self.leader is None else self.leader.low_watermark(start)

    def deleted_everywhere(self, offset: int) -> asyncio.Future[None] | None:
        """A future for when no live replica has records before ``offset``; None if none has."""
        return None if self.low_watermark >= offset else self._wait_for_low_watermark(offset)

    # -- following -----------------------------------------------------------------------------

    def append_fetched(self, fetched: FetchedBatches, now_ms: int) -> None:
        """Append what the leader has sent, unchanged; after a KafkaError the log is unchanged."""
        log = self.log
        if covers(fetched.batches, log.log_end_offset):
            # The leader's log begins within a batch, and ours is still empty.
            if log.log_end_offset != log.local_log_start_offset:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD, f"{fetched.batches[0]} overlaps with {log}"
                )
            log.truncate_to(fetched.batches[0].base_offset)
        for part in parts_within(fetched, log.config.segment_bytes):
            if part.batches:
                log.appender.append_as_follower(part.batches, now_ms, part.buffer)
                self._uncommitted.add(log.log_end_offset, len(part.buffer))

    def follow(self, high_watermark: int, log_start_offset: int) -> None:
        """Apply the leader's high watermark and log start offset."""
        log, before = self.log, self.log.high_watermark
        log.high_watermark = max(before, min(high_watermark, log.log_end_offset))
        # First: the leader may never have had the records before it.
        if log.trimming.follow_start(log_start_offset):
            self._notify(0)
        if log.high_watermark > before:
            self._tell_committed(log.high_watermark)
        moved = self._uncommitted.take(log.high_watermark)
        if moved and self._watchers:
            self._notify(moved)

    def truncate_to(self, offset: int) -> None:
        """Truncate what the leader does not have. Blocks."""
        self.log.truncate_to(offset)
        self._uncommitted.clear()
        self._notify(0)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        """Drop everything: the leader's log, or what it has locally, begins later. Blocks."""
        self.log.truncate_fully_and_start_at(offset, log_start)
        self._uncommitted.clear()
        self._notify(0)

    def _advance_high_watermark(self) -> None:
        log, leader = self.log, self.leader
        if leader is None:
            self._commit(log.log_end_offset)
            return
        if not self.enough_in_sync:
            return
        now_ms = self._host.clock.now_ms()
        before = log.high_watermark
        self._commit(leader.high_watermark(before, log.log_end_offset, now_ms))
        if log.high_watermark > before:
            for follower in self._follower_watchers:
                follower.high_watermark_moved()
            moved = self._uncommitted.take(log.high_watermark)
            if moved and self._watchers:
                self._notify_readers(moved)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"
