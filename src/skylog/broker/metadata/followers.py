"""The parts of a broker that act on metadata: partitions, groups, permissions, quotas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skylog.kernel import limits
from skylog.kernel.errors import KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.topics import CONSUMER_OFFSETS, DISKLESS_METADATA, TRANSACTION_STATE
from skylog.replicated.topic_log import TopicLog

if TYPE_CHECKING:
    from skylog.broker.handlers.fetch_sessions import FetchSessions
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.services import Services
    from skylog.controller.image import ClusterImage, Delta
    from skylog.controller.image.topics import Topic
    from skylog.kernel.ids import Uuid
    from skylog.log.manager import LogManager
    from skylog.replication.partition import Partition
    from skylog.security.authorizer import Authorizer
    from skylog.security.connection_limits import ConnectionLimits
    from skylog.security.quotas import ClientQuotas

log = get_logger("broker.metadata")


class PartitionFollower:
    """Keeps partitions, their settings and the group coordinator in line with metadata.

    A new partition costs files. If very many are created at once, only some are created before the
    change is acknowledged; the others follow in steps, so that other requests need not wait for all
    of them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._started = False
        # Partitions that are still to be created.
        self._due: dict[tuple[Uuid, int], None] = {}
        # Partitions that this broker coordinates (True), or whose coordinator's state it replicates
        # (False), with the epoch since which it does.
        self._coordinated: dict[tuple[str, int], tuple[bool, int]] = {}

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        for topic in delta.topics_deleted.values():
            self._deleted(topic)
        if delta.topics_deleted:
            gone = [(topic.name, topic.topic_id) for topic in delta.topics_deleted.values()]
            self._services.groups.topics_deleted(gone)
        self._tell_groups(image, delta)
        left = limits.PARTITIONS_MADE_AT_ONCE_MAX
        for topic_id, indexes in delta.partitions.items():
            changed = image.topic_by_id(topic_id)
            if changed is None:
                continue
            now = sorted(indexes)
            if self._started and len(now) > left and not _coordinates(changed.name):
                self._postpone(topic_id, now[left:])
                now = now[:left]
            left -= len(now)
            self._changed(changed, now)
        self._started = True
        if delta.brokers:
            self._services.replicas.brokers_changed()
        for name in self._services.configs.changed_topics(delta):
            if image.topic(name) is not None:  # otherwise its settings are gone too
                self._services.replicas.configure(name, self._services.configs.log_config(name))

    def _tell_groups(self, image: ClusterImage, delta: Delta) -> None:
        names = {topic.name for topic in delta.topics_deleted.values()}
        found = (image.topic_name(topic_id) for topic_id in delta.partitions)
        names.update(name for name in found if name is not None)
        if names:
            self._services.groups.topics_changed(names)

    def _postpone(self, topic_id: Uuid, indexes: Iterable[int]) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._due.update(dict.fromkeys((topic_id, index) for index in indexes))

    def _next_turn(self) -> None:
        """Create a few of the partitions that are due, by the current metadata."""
        try:
            for _ in range(min(limits.PARTITIONS_MADE_PER_TURN, len(self._due))):
                topic_id, index = next(iter(self._due))
                del self._due[topic_id, index]
                topic = self._services.image.topic_by_id(topic_id)
                if topic is not None and index in topic.partitions:
                    self._changed(topic, (index,))
        finally:  # a failure of one does not affect the others
            if self._due:
                asyncio.get_running_loop().call_soon(self._next_turn)

    def _deleted(self, topic: Topic) -> None:
        self._services.replicas.delete_topic(topic.name)
        self._services.traffic.forget(topic.name)
        for index in topic.partitions:
            self._resign(topic.name, index)

    def _changed(self, topic: Topic, indexes: Iterable[int]) -> None:
        services = self._services
        if topic.name == CONSUMER_OFFSETS:
            services.groups.partition_count = len(topic.partitions)
        elif topic.name == TRANSACTION_STATE:
            services.transactions.partition_count = len(topic.partitions)
        config = services.configs.log_config(topic.name)
        for index in indexes:
            state = topic.partitions[index]
            if not state.has_log:
                continue
            try:
                partition = services.replicas.assign(
                    topic.name, index, topic.topic_id, state, config
                )
            except (KafkaError, OSError) as error:
                # A disk that fails one partition must not keep the others from being served.
                log.error("partition not served", topic=topic.name, partition=index, why=str(error))
                continue
            if topic.name == DISKLESS_METADATA or _coordinates(topic.name):
                self._coordinate(topic.name, index, partition)

    def _coordinate(self, topic: str, index: int, partition: Partition | None) -> None:
        copied = topic == DISKLESS_METADATA
        if partition is None or not (partition.is_leader or copied):
            self._resign(topic, index)
            return
        now = partition.is_leader, partition.leader_epoch
        if self._coordinated.get((topic, index)) == now:
            return
        self._coordinated[topic, index] = now
        services = self._services
        if topic == DISKLESS_METADATA:
            coordination = services.diskless.coordination
            if coordination is not None:
                coordination.assign(index, partition)
            return
        log_of = TopicLog(partition, services.clock, services.executor)
        if topic == TRANSACTION_STATE:
            services.transactions.partition_led(index, log_of, partition.leader_epoch)
        else:
            services.groups.partition_led(index, log_of)

    def _resign(self, topic: str, index: int) -> None:
        if self._coordinated.pop((topic, index), None) is None:
            return
        if topic == DISKLESS_METADATA:
            coordination = self._services.diskless.coordination
            if coordination is not None:
                coordination.local.partition_resigned(index)
        elif topic == TRANSACTION_STATE:
            self._services.transactions.partition_resigned(index)
        else:
            self._services.groups.partition_resigned(index)


def _coordinates(topic: str) -> bool:
    """Whether clients look up the leaders of its partitions as coordinators."""
    return topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)


class ConfigFollower:
    """Drops resolved settings that have changed; runs before all followers that read them."""

    def __init__(self, configs: Configs) -> None:
        self._configs = configs

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        self._configs.metadata_changed(image, delta)


class AclFollower:
    """Updates the authorizer, and has idle partitions of fetch sessions checked again, so that a
    refusal is reported."""

    def __init__(self, authorizer: Authorizer, sessions: FetchSessions) -> None:
        self._authorizer = authorizer
        self._sessions = sessions

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        for acl_id in delta.acls_removed:
            self._authorizer.remove(acl_id)
        for acl_id, acl in delta.acls_added.items():
            self._authorizer.add(acl_id, acl)
        if delta.acls_removed or delta.acls_added:
            self._sessions.look_again()


class QuotaFollower:
    """Updates client quotas and the rate limits of new connections."""

    def __init__(self, quotas: ClientQuotas, connections: ConnectionLimits) -> None:
        self._quotas = quotas
        self._connections = connections
        self._known: dict[tuple[tuple[str, str | None], ...], set[str]] = {}

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        for entity in delta.quotas:
            values = image.quotas.of(entity)
            before = self._known.pop(entity, set())
            if values:
                self._known[entity] = set(values)
            for key in before | set(values):
                self._update(dict(entity), key, values.get(key))

    def _update(self, parts: dict[str, str | None], key: str, value: float | None) -> None:
        if not self._quotas.update(parts, key, value) and "ip" in parts:
            self._connections.update_ip_rate(parts["ip"], value)


def put_strays_aside(logs: LogManager, image: ClusterImage, node_id: int) -> None:
    """Put aside logs that metadata does not place on this broker: of topics that were deleted, or
    partitions that were moved, while it was down. As in Kafka they are kept for the operator: the
    metadata may be what is missing."""
    for stray in logs.logs():
        topic = image.topic_by_id(stray.companions.topic_id)
        state = None if topic is None else topic.partitions.get(stray.partition)
        if state is None or node_id not in state.replicas:
            log.warning("stray log put aside", topic=stray.topic, partition=stray.partition)
            logs.delete(stray.topic, stray.partition, stray=True)
