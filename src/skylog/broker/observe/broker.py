"""The broker's metrics: the parts keep the totals, which are read at each scrape.

They are read on a thread, because ten thousand topics make a long page. Everything that may change
meanwhile is therefore copied in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from skylog.broker.services import Services
    from skylog.log.cleaner import LogCleaner
    from skylog.routing.router import Router

_TOPIC_TOTALS = {
    "bytes_in": "Bytes of record batches that producers appended.",
    "bytes_out": "Bytes of record batches that consumers fetched.",
    "messages_in": "Records that producers appended.",
    "produce_requests": "Record batches that producers appended.",
    "rejected_batches": "Record batches of producers that were refused.",
    "replication_bytes_in": "Bytes of record batches that followers here fetched from leaders.",
    "replication_bytes_out": "Bytes of record batches that leaders here sent to followers.",
}


class BrokerCollector(Collector):
    """Reads the broker's totals for Prometheus."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        yield from self._topics()
        partitions = len(self._services.replicas)
        yield self._gauge("skylog_partitions", "Replicas of partitions on this broker.", partitions)
        sessions = len(self._services.fetch_sessions)
        yield self._gauge("skylog_fetch_sessions", "Open incremental fetch sessions.", sessions)
        unfinished = self._services.transactions.unfinished_count
        text = "Transactions decided here whose markers are not written to all partitions yet."
        yield self._gauge("skylog_transactions_unfinished", text, unfinished)

    @staticmethod
    def _gauge(name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(name, text, value=value)

    def _topics(self) -> Iterator[Metric]:
        topics = tuple(self._services.traffic.topics.items())
        for field, text in _TOPIC_TOTALS.items():
            family = CounterMetricFamily(f"skylog_topic_{field}", text, labels=["topic"])
            for name, totals in topics:
                family.add_metric([name], getattr(totals, field))
            yield family


class RoutingCollector(Collector):
    """Reports for Prometheus how clients were routed to diskless partitions."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "skylog_routed_partitions",
            "Diskless partitions in Metadata answers, by how the leader shown was chosen.",
            labels=["route"],
        )
        for route, count in tuple(self._router.routes.items()):
            family.add_metric([route.name.lower()], count)
        yield family


class CleanerCollector(Collector):
    """Reports the log cleaner's work for Prometheus."""

    def __init__(self, cleaner: LogCleaner) -> None:
        self._cleaner = cleaner

    def collect(self) -> Iterator[Metric]:
        stats = self._cleaner.stats
        for name, text, value in (
            ("passes", "Runs of the log cleaner over a partition's log.", stats.passes),
            ("failures", "Runs of the log cleaner that failed.", stats.failures),
            (
                "io_bytes",
                "Bytes that the log cleaner read and wrote.",
                stats.bytes_read_and_written,
            ),
            ("removed_bytes", "Bytes that compaction removed from logs.", stats.bytes_removed),
        ):
            yield CounterMetricFamily(f"skylog_log_cleaner_{name}", text, value=value)
        yield GaugeMetricFamily(
            "skylog_log_cleaner_dirty_ratio_max",
            "Largest share of a log that is not compacted yet, from 0 to 1.",
            value=stats.dirty_ratio_max,
        )
        yield GaugeMetricFamily(
            "skylog_log_cleaner_uncleanable_partitions",
            "Partitions that compaction has given up; the broker's log says why.",
            value=len(stats.uncleanable),
        )
