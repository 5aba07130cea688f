"""Metrics of every node, broker or controller: its requests, and the quorum that it sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from skylog.broker.observe.stages import buckets_of
from skylog.kernel.errors import ErrorCode
from skylog.kernel.native import native_libraries

if TYPE_CHECKING:
    from skylog.broker.net.dispatch import Dispatcher
    from skylog.broker.net.in_flight import Memory
    from skylog.broker.net.server import Listener
    from skylog.controller.image import ClusterImage
    from skylog.kernel.stages import Stage
    from skylog.quorum.node import QuorumNode


_ERROR_CODES: Final = frozenset(map(int, ErrorCode))


class RequestsCollector(Collector):
    """Requests by API, connections by listener, and the memory that both take."""

    def __init__(
        self, dispatchers: Iterable[Dispatcher], listeners: Iterable[Listener], memory: Memory
    ) -> None:
        self._dispatchers = tuple(dispatchers)
        self._listeners = tuple(listeners)
        self._memory = memory

    def collect(self) -> Iterator[Metric]:
        yield self._requests()
        yield self._errors()
        yield self._durations()
        connections = GaugeMetricFamily(
            "skylog_connections", "Open connections, by listener.", labels=["listener"]
        )
        for listener in self._listeners:
            connections.add_metric([listener.name], len(listener))
        yield connections
        yield from self._in_flight()

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "skylog_requests", "Requests that were read and handed to a handler.", labels=["api"]
        )
        totals: Counter[str] = Counter()
        for dispatcher in self._dispatchers:
            for key, count in dispatcher.requests.items():
                totals[key.name] += count
        for name, count in totals.items():
            family.add_metric([name], count)
        return family

    def _errors(self) -> Metric:
        family = CounterMetricFamily(
            "skylog_request_errors",
            "Requests answered with an error for the whole request. Errors of single topics or"
            " partitions in an answer do not count.",
            labels=["api", "error"],
        )
        totals: Counter[tuple[str, str]] = Counter()
        for dispatcher in self._dispatchers:
            for (key, code), count in tuple(dispatcher.failed.items()):
                totals[key.name, _error_name(code)] += count
        for names, count in totals.items():
            family.add_metric(names, count)
        return family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            "skylog_request_seconds",
            "Time from a request's arrival to its answer. A fetch includes its wait for records,"
            " a produce request its wait for replicas or for the object store.",
            labels=["api"],
        )
        stages: dict[str, list[Stage]] = {}
        for dispatcher in self._dispatchers:
            for key, stage in dispatcher.answered.items():
                if stage.runs:
                    stages.setdefault(key.name, []).append(stage)
        for name, found in stages.items():
            family.add_metric([name], buckets_of(*found), sum(stage.seconds for stage in found))
        return family

    def _in_flight(self) -> Iterator[Metric]:
        held = GaugeMetricFamily(
            "skylog_in_flight_bytes",
            "Bytes of requests being received or handled, and of answers not yet sent.",
            labels=["kind"],
        )
        limit = GaugeMetricFamily(
            "skylog_in_flight_limit_bytes",
            "Bytes in flight beyond which the oldest connections are closed.",
            labels=["kind"],
        )
        for kind in (self._memory.requests, self._memory.answers):
            held.add_metric([kind.what], kind.total)
            limit.add_metric([kind.what], kind.bytes_max)
        yield from (held, limit)


def _error_name(code: int) -> str:
    """A newer controller may have returned a code that is unknown here."""
    return ErrorCode(code).name if code in _ERROR_CODES else str(code)


class QuorumCollector(Collector):
    """The metadata quorum and the brokers, as this node knows them."""

    def __init__(self, quorum: QuorumNode, image: ClusterImage) -> None:
        self._quorum = quorum
        self._image = image

    def collect(self) -> Iterator[Metric]:
        quorum = self._quorum
        told = quorum.leader_and_epoch
        shown = {
            "leader_id": (
                "Node id of the active controller; -1 while there is none.",
                told.leader_id,
            ),
            "epoch": ("Leader epoch of the metadata quorum; every election raises it.", told.epoch),
            "is_leader": (
                "1 on the active controller, 0 on every other node.",
                int(quorum.is_leader),
            ),
            "high_watermark": (
                "Offset up to which the metadata log is committed, as this node knows it.",
                quorum.high_watermark,
            ),
            "end_offset": (
                "Offset at which this node's copy of the metadata log ends.",
                quorum.end_offset,
            ),
            "voters": ("Voters of the metadata quorum.", len(quorum.voters.voters)),
        }
        for name, (text, value) in shown.items():
            yield GaugeMetricFamily(f"skylog_quorum_{name}", text, value=value)
        brokers = tuple(self._image.brokers.by_id.values())
        fenced = sum(broker.fenced for broker in brokers)
        family = GaugeMetricFamily(
            "skylog_brokers", "Registered brokers, by state: active or fenced.", labels=["state"]
        )
        family.add_metric(["active"], len(brokers) - fenced)
        family.add_metric(["fenced"], fenced)
        yield family


class NativeCollector(Collector):
    """Reports which modules run in C, and which in Python."""

    def __init__(self) -> None:
        self._libraries = native_libraries()

    def collect(self) -> Iterator[Metric]:
        text = "1 if a library runs in C, 0 if Python does its work, more slowly."
        family = GaugeMetricFamily("skylog_native", text, labels=["library"])
        for library, built in self._libraries.items():
            family.add_metric([library], int(built))
        yield family
