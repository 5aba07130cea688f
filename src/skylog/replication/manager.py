"""All partitions of this broker: found by name or id, created and deleted by metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, Protocol

from skylog.kernel.clock import Clock
from skylog.kernel.ids import Uuid
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.manager import LogManager
from skylog.replication.leader import Brokers, IsrChange
from skylog.replication.partition import Partition, PartitionState
from skylog.replication.synced import SyncedPartition

NO_EPOCH: Final = -1
# The number of partitions processed before other tasks get a turn.
_PER_TURN: Final = 256


class Followed(Protocol):
    """Fetches partitions from their leaders."""

    def follow(self, partition: Partition) -> None: ...

    def forget(self, partition: Partition) -> None: ...


class Alterations(Protocol):
    """Requests ISR changes from the controller."""

    def broker_epoch(self) -> int: ...

    def submit(self, partition: Partition, change: IsrChange) -> None: ...


class ReplicaListener(Protocol):
    """Follows the replicas on this broker."""

    def replica_changed(self, partition: Partition) -> None:
        """Metadata or settings of a replica have changed, or it is new."""

    def replica_dropped(self, partition: Partition, *, deleted: bool) -> None:
        """It is dropped next, because its topic was ``deleted`` or it is elsewhere now."""


class ReplicaManager:
    """Manages the partitions on this broker."""

    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        clock: Clock,
        lag_ms_max: int,
        brokers: Brokers,
        alterations: Alterations,
        fetchers: Followed,
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.lag_ms_max = lag_ms_max
        self.brokers = brokers
        self._logs = logs
        self._alterations = alterations
        self._fetchers = fetchers
        self._topics: dict[str, dict[int, Partition]] = {}
        # Those led by this broker that have other replicas.
        self._led: dict[Partition, None] = {}
        self._listeners: list[ReplicaListener] = []

    def add_listener(self, listener: ReplicaListener) -> None:
        self._listeners.append(listener)

    # Services for partitions, too (``PartitionHost``).

    def broker_epoch(self) -> int:
        return self._alterations.broker_epoch()

    def alter_isr(self, partition: Partition, change: IsrChange) -> None:
        self._alterations.submit(partition, change)

    async def sync(self, log: Log) -> None:
        await self._logs.sync(log)

    # Metadata

    def assign(
        self, topic: str, index: int, topic_id: Uuid, state: PartitionState, config: LogConfig
    ) -> Partition | None:
        """Apply metadata to a partition; None if it is not on this broker."""
        partitions = self._topics.setdefault(topic, {})
        partition = partitions.get(index)
        if self.node_id not in state.replicas:
            if partition is not None:
                self._drop(partition, deleted=False)
            return None
        if partition is None:
            log = self._logs.get_or_create(topic, index, topic_id, config)
            kind = SyncedPartition if topic == METADATA_TOPIC else Partition
            partition = kind(self, topic, index, topic_id, log)
            partitions[index] = partition
        partition.update(state)
        if len(state.replicas) > 1:
            self._fetchers.follow(partition)
        if partition.leader is not None:
            self._led[partition] = None
        else:
            self._led.pop(partition, None)
        for listener in self._listeners:
            listener.replica_changed(partition)
        return partition

    def configure(self, topic: str, config: LogConfig) -> None:
        """A topic's settings changed."""
        for partition in self._topics.get(topic, {}).values():
            partition.configure(config)
            for listener in self._listeners:
                listener.replica_changed(partition)

    def delete_topic(self, topic: str) -> None:
        for partition in tuple(self._topics.get(topic, {}).values()):
            self._drop(partition, deleted=True)
        self._topics.pop(topic, None)

    def _drop(self, partition: Partition, *, deleted: bool) -> None:
        for listener in self._listeners:
            listener.replica_dropped(partition, deleted=deleted)
        self._fetchers.forget(partition)
        self._led.pop(partition, None)
        partition.mark_deleted()
        del self._topics[partition.topic][partition.index]
        self._logs.delete(partition.topic, partition.index)

    def brokers_changed(self) -> None:
        """A broker may be back whose followers could not join ISRs before."""
        for partition in self._led:
            partition.expand_isr()

    async def review_isrs(self) -> None:
        """Request ISRs without lagging replicas, and with those that have caught up."""
        for seen, partition in enumerate(tuple(self._led), 1):
            partition.shrink_isr()
            partition.expand_isr()
            if seen % _PER_TURN == 0:
                await asyncio.sleep(0)

    # Finding

    def get(self, topic: str, index: int) -> Partition | None:
        partitions = self._topics.get(topic)
        return partitions.get(index) if partitions else None

    def __len__(self) -> int:
        """The number of partitions; may be called from any thread."""
        return sum(map(len, tuple(self._topics.values())))

    def __iter__(self) -> Iterator[Partition]:
        """All partitions; may be called from any thread."""
        for partitions in tuple(self._topics.values()):
            yield from tuple(partitions.values())
