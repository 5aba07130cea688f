"""Metrics of replication, under the names that exporters give to Kafka's.

They are read on a thread, so what may change is copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from skylog.broker.assembly.replication import Replication

_MANAGER: Final = "kafka_server_replicamanager"
_FETCHERS: Final = "kafka_server_replicafetchermanager"


class ReplicationCollector(Collector):
    """Counts led partitions by how many of their replicas are in sync, and followers' progress."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication

    def collect(self) -> Iterator[Metric]:
        led = [partition for partition in self._replication.replicas if partition.is_leader]
        below = sum(not partition.enough_in_sync for partition in led)
        at = sum(len(partition.isr) == partition.min_in_sync for partition in led)
        moving = sum(partition.reassigning for partition in led)
        late = self._replication.late_transactions.partition_count
        for name, text, count in (
            ("leadercount", "Classic partitions that this broker leads.", len(led)),
            (
                "underminisrpartitioncount",
                "Led partitions with fewer in-sync replicas than min.insync.replicas.",
                below,
            ),
            (
                "atminisrpartitioncount",
                "Led partitions with exactly min.insync.replicas in sync.",
                at,
            ),
            ("reassigningpartitions", "Led partitions that are being reassigned.", moving),
            (
                "partitionswithlatetransactionscount",
                "Led partitions with a transaction that is open for too long.",
                late,
            ),
        ):
            yield GaugeMetricFamily(f"{_MANAGER}_{name}", text, value=count)
        yield from self._isrs()
        yield from self._fetchers()

    def _isrs(self) -> Iterator[Metric]:
        updates = self._replication.isr_updates
        for name, text, count in (
            ("isrshrinks", "Times that an ISR shrank.", updates.shrinks),
            ("isrexpands", "Times that an ISR expanded.", updates.expands),
            (
                "failedisrupdates",
                "Changes of an ISR that the controller did not make.",
                updates.failed,
            ),
        ):
            yield CounterMetricFamily(f"{_MANAGER}_{name}", text, value=count)

    def _fetchers(self) -> Iterator[Metric]:
        fetchers = self._replication.fetchers
        for name, text, value in (
            ("partitioncount", "Partitions that this broker follows.", fetchers.followed_count),
            (
                "maxlag",
                "Largest lag of a follower here behind its leader, in records.",
                fetchers.lag_max,
            ),
            (
                "failedpartitionscount",
                "Followed partitions that were given up; the broker's log says why.",
                fetchers.failed_count,
            ),
        ):
            yield GaugeMetricFamily(f"{_FETCHERS}_{name}", text, value=value)
