"""Metrics of partitions and their replicas, by Kafka's names with underscores for dots.

Only the active controller reports the controller's metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.controller.managed_replicas import has_single_replica
from skylog.controller.racks import rack_aware

if TYPE_CHECKING:
    from skylog.controller.image import ClusterImage
    from skylog.controller.image.topics import Partition, Topic
    from skylog.controller.shell import Controller
    from skylog.controller.state import ControllerState

    _Topics = list[tuple[Topic, tuple[tuple[int, Partition], ...]]]

_PREFIX: Final = "kafka_controller_diskless"


class ReplicaCollector(Collector):
    """Partitions that this broker leads and whose replicas are not all in sync."""

    def __init__(self, image: ClusterImage, node_id: int) -> None:
        self._image = image
        self._node_id = node_id

    def collect(self) -> Iterator[Metric]:
        count = sum(
            partition.leader == self._node_id and len(partition.isr) < len(partition.replicas)
            for topic in tuple(self._image.topics.by_id.values())
            for partition in tuple(topic.partitions.values())
        )
        yield GaugeMetricFamily(
            "kafka_server_replicamanager_underreplicatedpartitions",
            "Partitions that this broker leads and whose replicas are not all in sync.",
            value=count,
        )


class ControllerCollector(Collector):
    """Reads the state of the active controller."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def collect(self) -> Iterator[Metric]:
        state = self._controller.state
        if state is None:
            return
        topics = [
            (topic, tuple(topic.partitions.items()))
            for topic in tuple(state.image.topics.by_id.values())
            if topic.diskless_enabled
        ]
        yield GaugeMetricFamily(
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "Partitions without a leader; only the active controller has this.",
            value=len(state.image.topics.leaderless),
        )
        yield from self._replicas(state, topics)
        yield from self._racks(state, topics)

    @staticmethod
    def _replicas(state: ControllerState, topics: _Topics) -> Iterator[Metric]:
        factor = GaugeMetricFamily(
            f"{_PREFIX}_effective_rf",
            "Replicas of partition 0 of a diskless topic.",
            labels=["topic"],
        )
        offline = 0
        for topic, partitions in topics:
            factor.add_metric([topic.name], len(partitions[0][1].replicas))
            for _, partition in partitions:
                offline += sum(
                    not state.image.brokers.is_active(replica) for replica in partition.replicas
                )
        yield factor
        yield GaugeMetricFamily(
            f"{_PREFIX}_rf1_topics_total",
            "Diskless topics that have partitions with a single replica.",
            value=sum(has_single_replica(topic) for topic, _ in topics),
        )
        yield GaugeMetricFamily(
            f"{_PREFIX}_offline_replicas_total",
            "Replicas of diskless partitions on brokers that are away, waiting for another one.",
            value=offline,
        )
        yield CounterMetricFamily(
            f"{_PREFIX}_replicas_reassigned",
            "Replicas of diskless partitions given to other brokers because theirs were away.",
            value=state.watch.replaced,
        )

    @staticmethod
    def _racks(state: ControllerState, topics: _Topics) -> Iterator[Metric]:
        each = GaugeMetricFamily(
            f"{_PREFIX}_rack_aware",
            "1 if no two replicas of a diskless partition share a rack, otherwise 0.",
            labels=["topic", "partition"],
        )
        aware = GaugeMetricFamily(
            f"{_PREFIX}_rack_aware_partitions_total",
            "Diskless partitions of which no two replicas share a rack.",
            labels=["topic"],
        )
        others = GaugeMetricFamily(
            f"{_PREFIX}_non_rack_aware_partitions_total",
            "Diskless partitions that have several replicas in one rack.",
            labels=["topic"],
        )
        for topic, partitions in topics:
            count = 0
            for index, partition in partitions:
                good = rack_aware([state.rack_of(replica) for replica in partition.replicas])
                each.add_metric([topic.name, str(index)], good)
                count += good
            aware.add_metric([topic.name], count)
            others.add_metric([topic.name], len(partitions) - count)
        yield from (each, aware, others)
