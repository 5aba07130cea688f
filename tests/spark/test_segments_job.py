"""Segments assembled from a diskless topic's batches hold the topic, and are built only once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skylog.kernel.errors import ConfigError, KafkaError
from skylog.log.checkpoints import decode_snapshot
from skylog.spark.jobs import segments
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.segments import SegmentsJob
from skylog.testing import Broker
from skylog.wire.batch import split_batches
from skylog.wire.records import decode_records
from tests.spark.support import Message, Topics

SEGMENT_BYTES = 20_000


def job(broker: Broker, topic: str, to: Path, *, tail: bool = False) -> SegmentsJob:
    cluster = JobCluster({"bootstrap.servers": broker.bootstrap})
    return SegmentsJob(cluster, topic, str(to), SEGMENT_BYTES, tail)


def messages(count: int, first: int = 0) -> list[Message]:
    return [Message(b"v%d" % i * 30, b"k%d" % i, i % 2) for i in range(first, first + count)]


def values(folder: Path) -> list[tuple[int, int, bytes | None]]:
    """(partition, offset, value) of the records in the logs."""
    found = []
    for log in sorted(folder.glob("*/*.log")):
        for batch in split_batches(memoryview(log.read_bytes())):
            assert batch.crc_ok()
            partition = int(log.parent.name[-1])
            found += [(partition, record.offset, record.value) for record in decode_records(batch)]
    return sorted(found)


def test_a_topic_becomes_segments_in_two_runs(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("to-segments", 2, message_timestamp_type="LogAppendTime")
    topics.produce(name, messages(1500), "zstd")
    for part in range(5):
        topics.produce(name, messages(200, 1500 + 200 * part))
    first = segments.run(spark, job(broker, name, tmp_path))
    assert first.segments >= 2
    # The last ones wait until a segment is full, or until they are requested.
    before = values(tmp_path)
    rows = [(row.partition, row.offset, row.value) for row in topics.rows(name, 2)]
    assert len(before) < len(rows)
    topics.produce(name, messages(200, 2500))
    segments.run(spark, job(broker, name, tmp_path, tail=True))
    rows = [(row.partition, row.offset, row.value) for row in topics.rows(name, 2)]
    assert values(tmp_path) == rows

    again = segments.run(spark, job(broker, name, tmp_path, tail=True))
    assert (again.segments, again.bytes) == (0, 0)
    for partition in range(2):
        listed = json.loads((tmp_path / f"{name}-{partition}" / "segments.json").read_text())
        assert listed["next_offset"] == 1350
        last = listed["segments"][-1]["last_offset"]
        snapshot = tmp_path / f"{name}-{partition}" / f"{last + 1:020d}.snapshot"
        assert isinstance(decode_snapshot(snapshot.read_bytes()), list)


def test_deleted_records_are_left_out(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("to-segments-late", 2)
    topics.produce(name, messages(400))
    segments.run(spark, job(broker, name, tmp_path, tail=True))
    for part in range(3):
        topics.produce(name, messages(200, 400 + 200 * part))
    topics.delete_records(name, 0, 400)
    segments.run(spark, job(broker, name, tmp_path, tail=True))
    offsets = {offset for partition, offset, _ in values(tmp_path) if partition == 0}
    assert offsets >= {*range(200), *range(400, 500)}


def test_errors_of_assembly_are_named(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    classic = topics.create("classic-to-segments", 1, diskless=False)
    with pytest.raises(ConfigError, match="is not diskless"):
        segments.run(spark, job(broker, classic, tmp_path))
    with pytest.raises(KafkaError, match="no-such-topic"):
        segments.run(spark, job(broker, "no-such-topic", tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written to"):
        segments.run(spark, job(broker, classic, tmp_path / "file" / "below"))
