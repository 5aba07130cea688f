"""From a partition's name to the object that serves it: the only place that checks its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from skylog.broker.partitions.classic import ClassicPartitions
from skylog.broker.partitions.port import RefusedError, ServedPartition, ServedPartitions
from skylog.broker.partitions.pure import PurePartitions
from skylog.controller.image.topics import PartitionKind
from skylog.kernel.errors import ErrorCode

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.assembly.replication import Replication
    from skylog.broker.observe.traffic import Traffic
    from skylog.broker.partitions.pure import TieredReading
    from skylog.broker.tiered.reads import RemoteReads
    from skylog.controller.image import ClusterImage, Delta
    from skylog.controller.image.topics import Topic
    from skylog.kernel.executor import Executor
    from skylog.kernel.settings import BrokerSettings
    from skylog.routing.router import Router


class Partitions:
    """The partitions in metadata, as this broker serves them."""

    def __init__(
        self, image: ClusterImage, kinds: Mapping[PartitionKind, ServedPartitions]
    ) -> None:
        self._image = image
        self.kinds = dict(kinds)

    def find(self, topic: str, index: int) -> ServedPartition:
        """The partition; raises Kafka's error if it is not served here."""
        known = self._image.topic(topic)
        if known is None:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.find_in(known, index)

    def find_in(self, topic: Topic, index: int) -> ServedPartition:
        state = topic.partitions.get(index)
        if state is None:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.kinds[state.kind].find(topic, index)

    def use_remote(self, remote: RemoteReads, tiered: TieredReading) -> None:
        """Tiered storage is enabled: these read what is in remote segments."""
        for kind in self.kinds.values():
            if isinstance(kind, ClassicPartitions):
                kind.remote = remote
            elif isinstance(kind, PurePartitions):
                kind.use_tiered(tiered)

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        """Behind the settings."""
        pure = self.kinds[PartitionKind.PURE]
        if isinstance(pure, PurePartitions):
            pure.metadata_changed(image, delta)

    def leader(self, topic: str, index: int, client_epoch: int = -1) -> ServedPartition:
        """The partition, if this broker leads it."""
        found = self.find(topic, index)
        found.require_leader(client_epoch)
        return found


def open_partitions(
    settings: BrokerSettings,
    image: ClusterImage,
    replication: Replication,
    engine: DisklessEngine,
    router: Router,
    executor: Executor,
    traffic: Traffic,
) -> Partitions:
    """A kind that is not listed here is not served."""
    classic = ClassicPartitions(
        replication.replicas, image, settings, replication.leader_quota, executor, traffic
    )
    pure = PurePartitions(engine, image, router, settings.node.node_id, traffic)
    return Partitions(image, {PartitionKind.CLASSIC: classic, PartitionKind.PURE: pure})
