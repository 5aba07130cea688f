"""Tells tiered storage what happens to the replicas on this broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from skylog.broker.tiered.copy_source import ReplicaSource
from skylog.tiered.segments import TopicIdPartition

if TYPE_CHECKING:
    from skylog.kernel.executor import Executor
    from skylog.log.log import Log
    from skylog.log.manager import LogManager
    from skylog.replication.partition import Partition
    from skylog.tiered.manager import RemoteLogManager
    from skylog.tiered.ports import RemoteLogs

_NOT_LEADING: Final = -1


class _Known(NamedTuple):
    source: ReplicaSource
    leader_epoch: int
    is_remote: bool


class TieredReplicas:
    """Listens to the replica manager and to the log manager."""

    def __init__(
        self,
        logs: RemoteLogs,
        manager: RemoteLogManager,
        local: LogManager,
        executor: Executor,
        may_be_remote: Callable[[], bool],
    ) -> None:
        """``may_be_remote``: there is a metadata topic, so something may have been copied."""
        self._logs = logs
        self._manager = manager
        self._local = local
        self._executor = executor
        self._may_be_remote = may_be_remote
        self._known: dict[TopicIdPartition, _Known] = {}

    # Replicas

    def replica_changed(self, partition: Partition) -> None:
        key = _key(partition)
        config = partition.log.config
        if not config.remote and key not in self._known and not _is_to_go(partition):
            return
        before = self._known.get(key)
        is_led = partition.leader_id == partition.node_id
        epoch = partition.leader_epoch if is_led else _NOT_LEADING
        source = before.source if before else self._new_source(partition)
        self._known[key] = _Known(source, epoch, config.remote)
        if config.remote:
            self._remote(partition, key, source, before)
        elif before is None or before.is_remote or before.leader_epoch != epoch:
            self._not_remote(partition, key, source)

    def replica_dropped(self, partition: Partition, *, deleted: bool) -> None:
        key = _key(partition)
        known = self._known.pop(key, None)
        if known is None:
            return
        known.source.close()
        if deleted and known.leader_epoch >= 0:
            self._manager.delete(key, partition.topic, partial(self._logs.unfollow, key))
        else:
            self._manager.forget(key)
            self._logs.unfollow(key)

    def _new_source(self, partition: Partition) -> ReplicaSource:
        return ReplicaSource(partition, self._local, self._executor)

    def _remote(
        self,
        partition: Partition,
        key: TopicIdPartition,
        source: ReplicaSource,
        before: _Known | None,
    ) -> None:
        epoch = self._known[key].leader_epoch
        is_new = before is None or not before.is_remote
        if is_new:
            self._logs.follow(key, partition.topic)
        if epoch < 0:
            if is_new or (before is not None and before.leader_epoch >= 0):
                self._manager.unlead(key, partition.topic, source)
            return
        is_new_epoch = before is None or before.leader_epoch != epoch
        # In its first epoch a partition has nothing that could have been copied.
        is_whole = source.has_records and source.knows_start
        if is_new_epoch and epoch > 0 and not is_whole and self._may_be_remote():
            partition.hold()
        self._manager.lead(key, partition.topic, epoch, source)

    def _not_remote(
        self, partition: Partition, key: TopicIdPartition, source: ReplicaSource
    ) -> None:
        epoch = self._known[key].leader_epoch
        partition.serve()
        if epoch < 0 or not _is_to_go(partition):
            self._manager.forget(key)
            self._logs.unfollow(key)
            return
        self._logs.follow(key, partition.topic)
        done = partial(self._logs.unfollow, key)
        self._manager.disable(key, partition.topic, epoch, source, done)

    # Logs

    def rolled(self, log: Log) -> None:
        self._manager.rolled(TopicIdPartition(log.companions.topic_id, log.partition))

    def start_moved(self, log: Log) -> None:
        self._manager.start_moved(TopicIdPartition(log.companions.topic_id, log.partition))


def _key(partition: Partition) -> TopicIdPartition:
    return TopicIdPartition(partition.topic_id, partition.index)


def _is_to_go(partition: Partition) -> bool:
    """Whether its topic was remote, and what is left of that shall be deleted."""
    config = partition.log.config
    return config.remote_log_delete_on_disable and not config.remote_storage_enable
