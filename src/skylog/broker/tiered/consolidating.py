"""Tells tiered storage of the diskless partitions that are consolidated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from skylog.broker.tiered.assembly_source import AssemblySource, as_assembled
from skylog.tiered.segments import TopicIdPartition

if TYPE_CHECKING:
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.tiered.assembly_source import AssemblyPorts
    from skylog.controller.image import ClusterImage, Delta
    from skylog.controller.image.topics import Topic
    from skylog.diskless.plane import TopicPartition
    from skylog.kernel.ids import Uuid
    from skylog.log.config import LogConfig
    from skylog.tiered.consolidation.assembler import Assembler
    from skylog.tiered.manager import RemoteLogManager
    from skylog.tiered.ports import RemoteLogs


class ConsolidatingPartitions:
    """The diskless partitions with remote.storage.enable that have a replica here. Follows
    metadata, behind the settings and the diskless engine."""

    def __init__(
        self,
        node_id: int,
        logs: RemoteLogs,
        manager: RemoteLogManager,
        configs: Configs,
        ports: AssemblyPorts,
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._manager = manager
        self._configs = configs
        self._ports = ports
        self._sources: dict[TopicIdPartition, AssemblySource] = {}
        self._indexes: dict[Uuid, set[int]] = {}
        ports.plane.watch(self._committed)

    @property
    def assembler(self) -> Assembler:
        return self._ports.assembler

    def get(self, partition: TopicIdPartition) -> AssemblySource | None:
        """A partition that is followed here, led or not."""
        return self._sources.get(partition)

    def led(self) -> Iterator[AssemblySource]:
        """Those that this broker leads; it may lead others by the time that the next is taken."""
        for source in tuple(self._sources.values()):
            if source.leader_epoch >= 0:
                yield source

    def _committed(self, partition: TopicPartition, high_watermark: int) -> None:
        source = self._sources.get(TopicIdPartition(*partition))
        if source is not None:
            source.committed(high_watermark)

    # -- metadata ------------------------------------------------------------------------------

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        for topic in delta.topics_deleted.values():
            for index in tuple(self._indexes.get(topic.topic_id, ())):
                self._drop(TopicIdPartition(topic.topic_id, index), deleted=True)
        for topic_id, indexes in delta.partitions.items():
            changed = image.topic_by_id(topic_id)
            if changed is not None and changed.diskless_enabled:
                self._changed(changed, indexes)
        for name in self._configs.changed_topics(delta):
            reconfigured = image.topic(name)
            if reconfigured is not None and reconfigured.diskless_enabled:
                self._changed(reconfigured, reconfigured.partitions)

    def _changed(self, topic: Topic, indexes: Iterable[int]) -> None:
        config = as_assembled(self._configs.log_config(topic.name))
        for index in tuple(indexes):
            state, key = topic.partitions[index], TopicIdPartition(topic.topic_id, index)
            is_here = config.remote and state.is_pure and self._node_id in state.replicas
            if not is_here:
                self._drop(key, deleted=False)
                continue
            source = self._sources.get(key) or self._add(key, topic.name, config)
            source.configure(config)
            if state.leader == self._node_id:
                source.led(state.leader_epoch)
                self._manager.lead(key, topic.name, state.leader_epoch, source)
            else:
                source.unled()
                self._manager.unlead(key, topic.name, source)

    def _add(self, key: TopicIdPartition, topic: str, config: LogConfig) -> AssemblySource:
        source = self._sources[key] = AssemblySource(key, topic, config, self._ports)
        self._indexes.setdefault(key.topic_id, set()).add(key.partition_index)
        self._logs.follow(key, topic)
        return source

    def _drop(self, key: TopicIdPartition, *, deleted: bool) -> None:
        source = self._sources.pop(key, None)
        if source is None:
            return
        indexes = self._indexes[key.topic_id]
        indexes.discard(key.partition_index)
        if not indexes:
            del self._indexes[key.topic_id]
        if deleted and source.leader_epoch >= 0:
            self._manager.delete(key, source.topic, partial(self._logs.unfollow, key))
        else:
            self._manager.forget(key)
            self._logs.unfollow(key)
        source.unled()
