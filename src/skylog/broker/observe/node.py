"""What /metrics shows of every node, broker or controller: its requests, and the quorum it sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.kernel.native import native_libraries

if TYPE_CHECKING:
    from skylog.broker.net.dispatch import Dispatcher
    from skylog.broker.net.server import Listener
    from skylog.controller.image import ClusterImage
    from skylog.quorum.node import QuorumNode


class RequestsCollector(Collector):
    """Requests by API, connections by listener."""

    def __init__(self, dispatchers: Iterable[Dispatcher], listeners: Iterable[Listener]) -> None:
        self._dispatchers = tuple(dispatchers)
        self._listeners = tuple(listeners)

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("skylog_requests", "Requests served", labels=["api"])
        totals: dict[str, int] = {}
        for dispatcher in self._dispatchers:
            for key, count in dispatcher.requests.items():
                totals[key.name] = totals.get(key.name, 0) + count
        for name, count in totals.items():
            requests.add_metric([name], count)
        yield requests
        connections = GaugeMetricFamily(
            "skylog_connections", "Open connections", labels=["listener"]
        )
        for listener in self._listeners:
            connections.add_metric([listener.name], len(listener))
        yield connections


class QuorumCollector(Collector):
    """The metadata quorum and the brokers, as this node knows them."""

    def __init__(self, quorum: QuorumNode, image: ClusterImage) -> None:
        self._quorum = quorum
        self._image = image

    def collect(self) -> Iterator[Metric]:
        quorum = self._quorum
        told = quorum.leader_and_epoch
        shown = {
            "leader_id": ("Node that leads the metadata quorum, -1 for none", told.leader_id),
            "epoch": ("Epoch of the metadata quorum", told.epoch),
            "is_leader": ("Whether this node is the active controller", int(quorum.is_leader)),
            "high_watermark": ("Committed records of the metadata log", quorum.high_watermark),
            "end_offset": ("Records of this node's metadata log", quorum.end_offset),
            "voters": ("Controllers that vote", len(quorum.voters.voters)),
        }
        for name, (text, value) in shown.items():
            yield GaugeMetricFamily(f"skylog_quorum_{name}", text, value=value)
        brokers = tuple(self._image.brokers.by_id.values())
        fenced = sum(broker.fenced for broker in brokers)
        family = GaugeMetricFamily("skylog_brokers", "Registered brokers", labels=["state"])
        family.add_metric(["active"], len(brokers) - fenced)
        family.add_metric(["fenced"], fenced)
        yield family


class NativeCollector(Collector):
    """Which modules run in C, and for which Python does the work."""

    def __init__(self) -> None:
        self._libraries = native_libraries()

    def collect(self) -> Iterator[Metric]:
        text = "Whether a module runs in C; 0 where Python does its work, more slowly"
        family = GaugeMetricFamily("skylog_native", text, labels=["library"])
        for library, built in self._libraries.items():
            family.add_metric([library], int(built))
        yield family
