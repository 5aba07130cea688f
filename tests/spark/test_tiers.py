"""Spark over both tiers: a job never notices where its bytes lay, and an audit looks at both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from skylog.client.bulk import PartitionRange, Regions
from skylog.spark.explanation import explain
from skylog.spark.jobs import audit, report, segments
from skylog.spark.jobs.audit import Audit, AuditJob
from skylog.spark.jobs.audit_found import Kind
from skylog.spark.jobs.audit_report import document, html
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.report import ReportJob
from skylog.spark.jobs.report_page import Prices
from skylog.spark.jobs.report_page import html as report_html
from skylog.spark.jobs.segments import SegmentsJob
from skylog.testing import Broker
from tests.integration.bulk_tiers import TOPIC, prune, still_broker, tier
from tests.spark.support import Message, Row, Topics, rows_of
from tests.spark.test_segments_job import values
from tests.spark.test_stream import Job

BASE_MS = 1_700_000_000_000
BATCHES, PER_BATCH = 10, 30


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Broker]:
    with still_broker(tmp_path) as running:
        yield running


def filled(node: Broker) -> list[Row]:
    """Two partitions, of which one is tiered alone in part, and in part in both tiers."""
    topics = Topics(node.bootstrap)
    configs = {name.replace(".", "_"): text for name, text in TOPIC.items()}
    topics.create("tiers", 2, **configs)
    for batch in range(BATCHES):
        topics.produce("tiers", messages(batch))
    return topics.rows("tiers", 2)


def messages(batch: int) -> list[Message]:
    first = batch * PER_BATCH
    return [
        Message(b"v%d" % i * 20, b"k%d" % i, i % 2, BASE_MS + i, [("n", b"%d" % i)])
        for i in range(first, first + PER_BATCH)
    ]


def move(node: Broker) -> None:
    first = tier(node, "tiers", 0, 0, 60)
    second = tier(node, "tiers", 0, first.end_offset + 1, 90)
    tier(node, "tiers", 0, second.end_offset + 1, 120)
    prune(node, "tiers", 0, second.end_offset + 1)


def load(spark: SparkSession, node: Broker, **options: str) -> DataFrame:
    given = {
        "kafka.bootstrap.servers": node.bootstrap,
        "subscribe": "tiers",
        "includeHeaders": "true",
    }
    return spark.read.format("skylog").options(**given, **options).load()


def test_batches_and_streams_read_both_tiers(
    spark: SparkSession, node: Broker, tmp_path: Path
) -> None:
    before = filled(node)
    planned = load(spark, node)
    stream = Job(spark, node, tmp_path / "checkpoint")
    options = {"subscribe": "tiers", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "200"}
    move(node)
    assert rows_of(planned) == before
    assert rows_of(load(spark, node, **{"read.via": "broker"})) == before
    # Cut by bytes, in both tiers, and skipped by segments that are too old.
    small = load(spark, node, minPartitions="7")
    assert rows_of(small) == before
    assert explain(small).tasks >= 7
    young = load(spark, node, **{"read.timestamp.min": str(BASE_MS + 150)})
    assert rows_of(young) == [row for row in before if row.timestamp >= BASE_MS + 150]
    assert explain(young).skipped_bytes > 0
    assert len(stream.run(**options)) == 2
    assert stream.rows == before
    # What was committed before is not read again, wherever the rest lies by now.
    Topics(node.bootstrap).produce("tiers", messages(BATCHES))
    tier(node, "tiers", 1, 0, 160)
    prune(node, "tiers", 1, 160)
    stream.run(**options)
    assert len(stream.rows) == PER_BATCH
    assert rows_of(load(spark, node)) == sorted(before + stream.rows)


def look(spark: SparkSession, node: Broker) -> Audit:
    return audit.run(spark, AuditJob(JobCluster({"bootstrap.servers": node.bootstrap})))


def test_jobs_look_at_both_tiers(spark: SparkSession, node: Broker, tmp_path: Path) -> None:
    rows = filled(node)
    move(node)
    sound = look(spark, node)
    assert not sound.findings, list(sound.findings)
    tallies = list(sound.checked.tallies.values())
    assert sum(tally.records for tally in tallies) == len(rows)
    assert sum(tally.segments for tally in tallies) == 3
    assert "tiered segments" in html(sound, "now")

    logs = sorted((tmp_path / "segments").rglob("*.log"))
    stored = sum(log.stat().st_size for log in logs)
    cluster = JobCluster({"bootstrap.servers": node.bootstrap})
    told = report.run(spark, ReportJob(cluster))
    assert sum(row.records for row in told.rows) == len(rows)
    assert sum(row.tiered_bytes for row in told.rows) == stored
    assert sum(row.bytes for row in told.rows) > stored
    assert "tiered bytes" in report_html(told, "now", Prices(), {})

    # Segments are assembled from both, whatever the splits cut.
    job = SegmentsJob(cluster, "tiers", str(tmp_path / "assembled"), 1500, tail=True)
    assert segments.run(spark, job).segments > 3
    assert values(tmp_path / "assembled") == [
        (row.partition, row.offset, row.value) for row in rows
    ]

    whole = logs[0].read_bytes()
    logs[0].write_bytes(whole[:700] + b"\xff\xfe" + whole[702:])
    logs[1].unlink()
    next((tmp_path / "segments").rglob("*.rsm-manifest")).write_bytes(b"{}")
    found = look(spark, node)
    assert set(found.findings.counts) == {Kind.SEGMENT}
    keys = {finding.object_key for finding in found.findings}
    assert keys >= {log.relative_to(tmp_path / "segments").as_posix() for log in logs[:2]}
    plan = json.loads(json.dumps(document(found, "now")))["plan"]
    assert plan[0]["damage"]


def test_a_prune_beside_an_audit_is_no_damage(node: Broker) -> None:
    """What is planned as WAL is in segments alone when it is looked at."""
    filled(node)
    cluster = JobCluster({"bootstrap.servers": node.bootstrap})
    planned = cluster.plan([PartitionRange("tiers", 0)], 1000, Regions.WAL)
    move(node)
    splits = planned.partitions[0].splits
    assert len(splits) > 3
    checked = audit._check(audit._Task(cluster, planned.storage_url or "", splits))
    assert not checked.findings, list(checked.findings)
    assert 0 < checked.tallies["tiers", 0].records < BATCHES * PER_BATCH / 2
