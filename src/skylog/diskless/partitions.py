"""Diskless partitions on a broker: they have no log, only watchers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Protocol

from skylog.diskless.plane import TopicPartition
from skylog.kernel.ids import Uuid


class Watcher(Protocol):
    """Waits for a partition to change."""

    def partition_moved(self, appended_bytes: int) -> None: ...


class DisklessPartition:
    """One partition. All methods run on the event loop."""

    __slots__ = (
        "_watchers",
        "deleted",
        "high_watermark",
        "index",
        "leader_epoch",
        "leader_id",
        "served",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: Uuid, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader_id = -1
        self.leader_epoch = -1
        self.high_watermark = -1
        self.deleted = False
        # The partition as served to clients, created on first use.
        self.served: Any = None
        self._watchers: dict[Watcher, None] = {}

    def watch(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def moved(self) -> None:
        for watcher in tuple(self._watchers):
            # The number of new bytes is unknown here: the watcher checks.
            watcher.partition_moved(0)


class DisklessPartitions:
    """All diskless partitions in metadata."""

    def __init__(self) -> None:
        self._topics: dict[Uuid, dict[int, DisklessPartition]] = {}

    def assign(
        self, topic: str, topic_id: Uuid, index: int, leader_id: int, leader_epoch: int
    ) -> DisklessPartition:
        """Update a partition to the current metadata."""
        partitions = self._topics.setdefault(topic_id, {})
        partition = partitions.get(index)
        if partition is None:
            partition = partitions[index] = DisklessPartition(topic, topic_id, index)
        partition.leader_id, partition.leader_epoch = leader_id, leader_epoch
        return partition

    def get(self, topic_id: Uuid, index: int) -> DisklessPartition | None:
        partitions = self._topics.get(topic_id)
        return partitions.get(index) if partitions else None

    def of(self, topic_id: Uuid) -> Collection[DisklessPartition]:
        return self._topics.get(topic_id, {}).values()

    def delete_topic(self, topic_id: Uuid) -> None:
        for partition in self._topics.pop(topic_id, {}).values():
            partition.deleted = True
            partition.served = None
            partition.moved()

    def committed(self, topic_partition: TopicPartition, high_watermark: int) -> None:
        """The plane reports a commit, through any broker."""
        partition = self.get(*topic_partition)
        if partition is not None and high_watermark > partition.high_watermark:
            partition.high_watermark = high_watermark
            partition.moved()

    def __iter__(self) -> Iterator[DisklessPartition]:
        return (one for partitions in self._topics.values() for one in partitions.values())

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))
