"""The report counts records by topic and hour."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs import report
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.metrics import counted_requests
from skylog.spark.jobs.report import HOUR_MS, ReportJob
from skylog.spark.jobs.report_page import Prices, document, html
from skylog.testing import Broker
from tests.spark.support import Message, Topics

FIRST = 1_700_000_000_000 // HOUR_MS * HOUR_MS


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Broker]:
    (tmp_path / "objects").mkdir()
    with Broker({"diskless.storage.url": (tmp_path / "objects").as_uri()}) as running:
        yield running


def test_hours_of_topics(spark: SparkSession, node: Broker) -> None:
    topics = Topics(node.bootstrap)
    for name in ("a", "b"):
        topics.create(name, 2)
    for hour in (0, 1, 3):
        at = FIRST + hour * HOUR_MS
        topics.produce("a", [Message(b"x" * 100, None, i % 2, at) for i in range(20)])
    topics.produce("b", [Message(b"y" * 50, None, 0, FIRST) for i in range(10)])

    cluster = JobCluster({"bootstrap.servers": node.bootstrap})
    found = report.run(spark, ReportJob(cluster))
    counts = {(row.topic, (row.hour_ms - FIRST) // HOUR_MS): row.records for row in found.rows}
    assert counts == {("a", 0): 20, ("a", 1): 20, ("a", 3): 20, ("b", 0): 10}
    # All uploaded bytes belong to topics, except the header of each object.
    objects = sum(count for count, _ in found.objects.values())
    assert sum(row.uploads for row in found.rows) == pytest.approx(objects, rel=0.05)

    told = json.loads(json.dumps(document(found, "now", Prices(), {"put": 3.0})))
    assert [one["topic"] for one in told["topics"]] == ["a", "b"]
    assert told["topics"][0]["records"] == 60
    assert told["topics"][0]["storage_dollars_per_month"] >= 0
    page = html(found, "now", Prices(), {"put": 3.0})
    assert page.count("<svg") == 4

    recent = report.run(spark, ReportJob(cluster, ("a",), hours=2))
    assert [row.records for row in recent.rows] == [20]
    nothing = report.run(spark, ReportJob(cluster, (topics.create("c"),)))
    assert nothing.rows == []
    assert "<svg" in html(nothing, "now", Prices(), {})


def test_invalid_metrics_addresses() -> None:
    with pytest.raises(ConfigError, match="not the address of a metrics page"):
        counted_requests(["file:///etc/passwd"])
    with pytest.raises(ConfigError, match="cannot read metrics"):
        counted_requests(["http://127.0.0.1:1/metrics"])
