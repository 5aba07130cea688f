from __future__ import annotations

from prometheus_client import Gauge

from skylog.kernel.metrics import Metrics


def test_brokers_of_one_process_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    Gauge("skylog_partitions", "Partitions.", registry=one.registry).set(3)
    Gauge("skylog_partitions", "Partitions.", registry=other.registry).set(4)
    assert "skylog_partitions 3.0" in one.exposition().decode().splitlines()
    assert "skylog_partitions 4.0" in other.exposition().decode().splitlines()
