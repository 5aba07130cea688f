from __future__ import annotations

from skylog.kernel.metrics import Metrics


def test_metrics_are_made_once_and_exposed() -> None:
    metrics = Metrics()
    counter = metrics.counter("requests", "Requests.", ["api"])
    assert metrics.counter("requests", "Requests.", ["api"]) is counter
    counter.labels("Fetch").inc(2)
    metrics.gauge("connections", "Connections.").set(3)
    waiting = [1, 2, 3, 4]
    metrics.gauge_of("waiting", "Waiting.", lambda: len(waiting))
    metrics.histogram("request_seconds", "Durations.").observe(0.002)
    waiting.pop()
    lines = metrics.exposition().decode().splitlines()
    assert 'skylog_requests_total{api="Fetch"} 2.0' in lines
    assert "skylog_connections 3.0" in lines
    assert "skylog_waiting 3.0" in lines
    assert 'skylog_request_seconds_bucket{le="0.001"} 0.0' in lines
    assert 'skylog_request_seconds_bucket{le="0.0025"} 1.0' in lines


def test_brokers_of_one_process_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    one.counter("requests", "Requests.").inc()
    other.counter("requests", "Requests.")
    assert "skylog_requests_total 1.0" in one.exposition().decode()
    assert "skylog_requests_total 0.0" in other.exposition().decode()
