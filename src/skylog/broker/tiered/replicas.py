"""Tells tiered storage which partitions are hosted and led here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.broker.tiered.copy_source import ReplicaSource
from skylog.tiered.segments import TopicIdPartition

if TYPE_CHECKING:
    from skylog.log.manager import LogManager
    from skylog.replication.partition import Partition
    from skylog.tiered.manager import RemoteLogManager
    from skylog.tiered.ports import RemoteLogs


class TieredReplicas:
    """Listens to the replica manager."""

    def __init__(self, logs: RemoteLogs, manager: RemoteLogManager, local: LogManager) -> None:
        self._logs = logs
        self._manager = manager
        self._local = local
        self._hosted: dict[TopicIdPartition, tuple[ReplicaSource, int]] = {}

    def replica_changed(self, partition: Partition) -> None:
        key = TopicIdPartition(partition.topic_id, partition.index)
        if not getattr(partition.log.config, "remote", False):
            return
        known = self._hosted.get(key)
        epoch = partition.leader_epoch if partition.is_leader else -1
        if known is not None and known[1] == epoch:
            return
        source = known[0] if known is not None else ReplicaSource(partition, self._local)
        self._hosted[key] = source, epoch
        self._logs.follow(key, partition.topic)
        if epoch < 0:
            self._manager.unlead(key, partition.topic, source)
        else:
            self._manager.lead(key, partition.topic, epoch, source)

    def replica_dropped(self, partition: Partition, *, deleted: bool) -> None:
        key = TopicIdPartition(partition.topic_id, partition.index)
        if self._hosted.pop(key, None) is None:
            return
        if deleted and partition.is_leader:
            self._manager.deleted(key, partition.topic)
        else:
            self._manager.forget(key)
            self._logs.unfollow(key)
