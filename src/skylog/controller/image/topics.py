"""Topics and partitions of the image, by id and by name.

Ten thousand partitions are common, so a partition is one slotted object that shares equal tuples
with other partitions. It is immutable and replaced on change, so that it can be compared with a
later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from skylog.controller.image.brokers import MIGRATING_DIRECTORY
from skylog.controller.image.delta import Delta
from skylog.kernel.errors import invariant
from skylog.kernel.ids import Uuid
from skylog.wire.messages.clear_elr_record import ClearElrRecord
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.remove_topic_record import RemoveTopicRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.schema import Message

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERED = 0
RECOVERING = 1
NO_RECOVERY_CHANGE = -1
NO_COORDINATOR = -1

Replicas = tuple[int, ...]
TopicIdPartition = tuple[Uuid, int]
# Interns a tuple, so that all partitions share equal ones.
Share = Callable[[tuple[Any, ...]], tuple[Any, ...]]


class PartitionKind(IntEnum):
    """What keeps a partition's records, and so which way its requests go.

    A partition that is migrated passes from the first to the last. Nothing asks a *topic* for its
    kind: while it is migrated it has partitions of several.
    """

    # A log on each replica, as with Kafka.
    CLASSIC = 0
    # To become diskless: still a log, until it is sealed.
    PENDING = 1
    # A log up to a boundary that never moves, and batches in objects from there on.
    HYBRID = 2
    # Batches in objects only.
    PURE = 3


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition in the controller's state."""

    replicas: Replicas
    directories: tuple[Uuid, ...]
    isr: Replicas
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = RECOVERED
    removing_replicas: Replicas = ()
    adding_replicas: Replicas = ()
    elr: Replicas = ()
    last_known_elr: Replicas = ()
    # The diskless coordinator that orders this partition's batches; none: a classic partition.
    diskless_coordinator: int = NO_COORDINATOR

    @classmethod
    def from_record(cls, record: PartitionRecord, share: Share) -> Partition:
        replicas = share(tuple(record.replicas))
        return cls(
            replicas=replicas,
            directories=share(_directories(record.directories, len(replicas))),
            isr=share(tuple(record.isr)),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            diskless_coordinator=record.diskless_coordinator_id,
        )

    def to_record(self, topic_id: Uuid, partition: int) -> PartitionRecord:
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
            diskless_coordinator_id=self.diskless_coordinator,
        )

    def merge(self, record: PartitionChangeRecord, share: Share | None = None) -> Partition:
        """The partition after a change: its epoch is bumped, the leader epoch if a leader is
        given."""
        led = record.leader != NO_LEADER_CHANGE
        replicas = _or(record.replicas, self.replicas, share)
        directories = self.directories
        if record.replicas is not None or record.directories is not None:
            found = _or(record.directories, directories)
            directories = _or(_directories(found, len(replicas)), directories, share)
        recovery = record.leader_recovery_state
        return Partition(
            replicas=replicas,
            directories=directories,
            isr=_or(record.isr, self.isr, share),
            leader=record.leader if led else self.leader,
            leader_epoch=self.leader_epoch + 1 if led else self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
            leader_recovery_state=(
                self.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery
            ),
            removing_replicas=_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_or(record.adding_replicas, self.adding_replicas),
            elr=_or(record.eligible_leader_replicas, self.elr),
            last_known_elr=_or(record.last_known_elr, self.last_known_elr),
            diskless_coordinator=self.diskless_coordinator,
        )

    @property
    def reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    @property
    def kind(self) -> PartitionKind:
        classic = self.diskless_coordinator == NO_COORDINATOR
        return PartitionKind.CLASSIC if classic else PartitionKind.PURE

    @property
    def has_log(self) -> bool:
        """Whether its replicas keep a log, in a directory of theirs."""
        return self.kind is not PartitionKind.PURE

    @property
    def writes_diskless(self) -> bool:
        """Whether new batches go to objects."""
        return self.kind in _WRITES_DISKLESS

    @property
    def is_pure(self) -> bool:
        """Whether any broker can serve it: all live replicas are in sync."""
        return self.kind is PartitionKind.PURE

    @property
    def takes_transactions(self) -> bool:
        """Whether transactions may write to it: markers need a permanent log."""
        return self.kind is PartitionKind.CLASSIC

    @property
    def preferred_replica(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    def directory(self, replica: int) -> Uuid:
        return self.directories[self.replicas.index(replica)]


_WRITES_DISKLESS = (PartitionKind.HYBRID, PartitionKind.PURE)


def _or(
    changed: Iterable[Any] | None, current: tuple[Any, ...], share: Share | None = None
) -> tuple[Any, ...]:
    if changed is None:
        return current
    return tuple(changed) if share is None else share(tuple(changed))


def _directories(found: Iterable[Uuid], replica_count: int) -> tuple[Uuid, ...]:
    """Records of old brokers have none: Kafka treats that as unknown for each replica."""
    directories = tuple(found)
    if any(directories):
        invariant(len(directories) == replica_count, "each replica has one directory")
        if any(directory != MIGRATING_DIRECTORY for directory in directories):
            return directories
    return (MIGRATING_DIRECTORY,) * replica_count


@dataclass(slots=True)
class Topic:
    """A topic and its partitions by number."""

    name: str
    topic_id: Uuid
    partitions: dict[int, Partition] = field(default_factory=dict)

    @property
    def diskless_enabled(self) -> bool:
        """Whether ``diskless.enable`` holds for it: for settings, new partitions and metrics.

        What is to be done with a partition is asked of the partition. Classic ones never stand
        beside others, so the first tells.
        """
        first = next(iter(self.partitions.values()), None)
        return first is not None and first.kind is not PartitionKind.CLASSIC


class Topics:
    """All topics, and small indexes of the partitions that need the controller's attention."""

    def __init__(self) -> None:
        self.by_id: dict[Uuid, Topic] = {}
        self.by_name: dict[str, Topic] = {}
        # Kafka refuses names that differ only in '.' and '_': metric names cannot distinguish them.
        self.by_unified_name: dict[str, dict[str, None]] = {}
        self.leaderless: dict[TopicIdPartition, None] = {}
        self.imbalanced: dict[TopicIdPartition, None] = {}
        self.reassigning: dict[TopicIdPartition, None] = {}
        self.partition_count = 0
        # The number of replicas of each broker, and of partitions that it leads.
        self.replica_counts: Counter[int] = Counter()
        self.leader_counts: Counter[int] = Counter()
        self._shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def partition(self, name: str, partition: int) -> Partition | None:
        topic = self.by_name.get(name)
        return None if topic is None else topic.partitions.get(partition)

    def colliding(self, name: str) -> str | None:
        """An existing topic whose name differs from this one only in '.' and '_'."""
        return next(iter(self.by_unified_name.get(unified(name), ())), None)

    def apply_topic(self, record: TopicRecord, delta: Delta) -> None:
        invariant(record.name not in self.by_name, f"topic {record.name} is there once")
        invariant(record.topic_id not in self.by_id, f"topic id {record.topic_id} is there once")
        topic = Topic(record.name, record.topic_id)
        self.by_id[topic.topic_id] = topic
        self.by_name[topic.name] = topic
        if unified_differs(topic.name):
            self.by_unified_name.setdefault(unified(topic.name), {})[topic.name] = None
        delta.topic_created(topic)

    def apply_partition(self, record: PartitionRecord, delta: Delta) -> None:
        topic = self._topic(record.topic_id)
        self._put(topic, record.partition_id, Partition.from_record(record, self._share), delta)

    def apply_change(self, record: PartitionChangeRecord, delta: Delta) -> None:
        topic = self._topic(record.topic_id)
        current = topic.partitions.get(record.partition_id)
        if current is None:
            invariant(False, f"{topic.name}-{record.partition_id} is there before it changes")
            return
        self._put(topic, record.partition_id, current.merge(record, self._share), delta)

    def apply_remove(self, record: RemoveTopicRecord, delta: Delta) -> Topic:
        topic = self._topic(record.topic_id)
        del self.by_id[topic.topic_id]
        del self.by_name[topic.name]
        alike = self.by_unified_name.get(unified(topic.name), {})
        alike.pop(topic.name, None)
        if not alike:
            self.by_unified_name.pop(unified(topic.name), None)
        self.partition_count -= len(topic.partitions)
        for partition, state in topic.partitions.items():
            self._count(state, -1)
            for index in (self.leaderless, self.imbalanced, self.reassigning):
                index.pop((topic.topic_id, partition), None)
        delta.topic_deleted(topic)
        return topic

    def apply_clear_elr(self, record: ClearElrRecord, delta: Delta) -> None:
        """Drop eligible leaders of one topic, or of all if none is given."""
        named = self.by_name.get(record.topic_name)
        invariant(named or not record.topic_name, f"topic {record.topic_name} is known")
        for topic in [named] if named else self.by_id.values():
            for partition, found in list(topic.partitions.items()):
                if found.elr or found.last_known_elr:
                    cleared = replace(
                        found,
                        elr=(),
                        last_known_elr=(),
                        partition_epoch=found.partition_epoch + 1,
                    )
                    self._put(topic, partition, cleared, delta)

    def records(self) -> Iterator[Message]:
        for topic in self.by_id.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for partition in sorted(topic.partitions):
                yield topic.partitions[partition].to_record(topic.topic_id, partition)

    def _topic(self, topic_id: Uuid) -> Topic:
        topic = self.by_id.get(topic_id)
        if topic is None:  # the text is only built on failure, because this runs for every record
            invariant(False, f"topic id {topic_id} is known")
        return topic  # type: ignore[return-value]

    def _put(self, topic: Topic, number: int, partition: Partition, delta: Delta) -> None:
        before = topic.partitions.get(number)
        if before is None:
            self.partition_count += 1
            self._count(partition, 1)
        elif before.replicas != partition.replicas or before.leader != partition.leader:
            self._count(before, -1)
            self._count(partition, 1)
        topic.partitions[number] = partition
        key = (topic.topic_id, number)
        _keep(self.leaderless, key, partition.leader == NO_LEADER)
        _keep(self.imbalanced, key, partition.leader != partition.preferred_replica)
        _keep(self.reassigning, key, partition.reassigning)
        delta.partition_changed(topic.topic_id, number)

    def _count(self, partition: Partition, by: int) -> None:
        """A broker with count zero has no entry."""
        for replica in partition.replicas:
            _add(self.replica_counts, replica, by)
        if partition.leader != NO_LEADER:
            _add(self.leader_counts, partition.leader, by)

    def _share(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._shared.setdefault(value, value)


def _add(counts: Counter[int], broker_id: int, by: int) -> None:
    counts[broker_id] += by
    if not counts[broker_id]:
        del counts[broker_id]


def unified(name: str) -> str:
    return name.replace(".", "_")


def unified_differs(name: str) -> bool:
    """Whether a name has a character that could make it collide with another."""
    return "." in name or "_" in name


def _keep(index: dict[TopicIdPartition, None], key: TopicIdPartition, wanted: bool) -> None:
    if wanted:
        index[key] = None
    else:
        index.pop(key, None)
