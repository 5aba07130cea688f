from __future__ import annotations

from prometheus_client import Gauge

from skylog.kernel.metrics import Metrics


def test_brokers_of_one_process_do_not_meet() -> None:
    for number in (3, 4):
        metrics, gauge = Metrics(), Gauge("skylog_partitions", "Partitions.", registry=None)
        metrics.register(gauge)
        gauge.set(number)
        assert f"skylog_partitions {number}.0" in metrics.exposition().decode().splitlines()
