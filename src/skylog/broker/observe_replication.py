"""What /metrics shows of replication; read on a thread, so what may change is copied first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from skylog.broker.replication import Replication
    from skylog.replication.partition import Partition


class ReplicationCollector(Collector):
    """Counts partitions by how many of their replicas are in sync."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication

    def collect(self) -> Iterator[Metric]:
        led = [partition for partition in self._replication.replicas if partition.is_leader]
        for name, text, partitions in (
            ("leader_partitions", "Partitions that this broker leads", led),
            (
                "under_replicated_partitions",
                "Led partitions with replicas out of sync",
                _under(led),
            ),
            ("under_min_isr_partitions", "Led partitions below min.insync.replicas", _below(led)),
            ("at_min_isr_partitions", "Led partitions at min.insync.replicas", _at(led)),
            ("reassigning_partitions", "Led partitions that are being moved", _moving(led)),
        ):
            yield GaugeMetricFamily(f"skylog_{name}", text, value=len(partitions))
        yield from self._isrs()
        yield from self._fetchers()

    def _isrs(self) -> Iterator[Metric]:
        updates = self._replication.isr_updates
        for name, text, count in (
            ("isr_shrinks", "Replicas that left the in-sync ones", updates.shrinks),
            ("isr_expands", "Replicas that joined the in-sync ones", updates.expands),
            ("failed_isr_updates", "Changes that the controller did not make", updates.failed),
        ):
            yield CounterMetricFamily(f"skylog_{name}", text, value=count)

    def _fetchers(self) -> Iterator[Metric]:
        fetchers = self._replication.fetchers
        for name, text, value in (
            ("followed_partitions", "Partitions that this broker fetches", fetchers.followed_count),
            ("replica_lag_max", "Records by which the slowest follower lags", fetchers.lag_max),
            (
                "failed_partitions",
                "Partitions not fetched: the log says why",
                fetchers.failed_count,
            ),
        ):
            yield GaugeMetricFamily(f"skylog_replica_fetcher_{name}", text, value=value)


def _under(led: list[Partition]) -> list[Partition]:
    return [partition for partition in led if len(partition.isr) < len(partition.replicas)]


def _below(led: list[Partition]) -> list[Partition]:
    return [partition for partition in led if not partition.enough_in_sync]


def _at(led: list[Partition]) -> list[Partition]:
    return [partition for partition in led if len(partition.isr) == partition.min_in_sync]


def _moving(led: list[Partition]) -> list[Partition]:
    return [partition for partition in led if partition.reassigning]
