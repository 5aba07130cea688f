"""Segments that a Spark job assembles take the place of the WAL, and every reader sees the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrameReader, SparkSession

from skylog.kernel.errors import KafkaError
from skylog.spark.jobs import commit_segments
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.commit_segments import CommitJob
from skylog.spark.jobs.work import run_tasks
from skylog.testing import Broker
from skylog.tiered.segments import SegmentState, TopicIdPartition
from tests.consolidating import consolidating_broker
from tests.integration.job_by_hand import JobByHand
from tests.spark.support import Message, Topics
from tests.waiting import until

SEGMENT_BYTES = 30_000
CONSOLIDATED = {"remote_storage_enable": "true", "diskless_tiering_assembler": "external"}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="module")
def broker(bucket: Path) -> Iterator[Broker]:
    with consolidating_broker(bucket, auto_create_topics_enable="false") as running:
        yield running


@pytest.fixture(scope="module")
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


def job(broker: Broker, *names: str, **more: Any) -> CommitJob:
    cluster = JobCluster({"bootstrap.servers": broker.bootstrap})
    return CommitJob(cluster, names, SEGMENT_BYTES, **more)


def messages(count: int, partitions: int, first: int = 0) -> list[Message]:
    return [
        Message(b"v%d" % at * 30, b"k%d" % at, at % partitions)
        for at in range(first, first + count)
    ]


def segments(broker: Broker, topic: str, partition: int) -> list[tuple[int, int]]:
    image, tiered = broker.node.image.topic(topic), broker.node._services.tiered
    assert image is not None
    assert tiered is not None
    remote = tiered.logs.get(TopicIdPartition(image.topic_id, partition))
    return [
        (one.start_offset, one.end_offset)
        for one in (remote.all() if remote is not None else ())
        if one.state is SegmentState.COPY_FINISHED
    ]


def test_a_topic_moves_to_tiered_storage_in_two_runs(
    spark: SparkSession,
    broker: Broker,
    topics: Topics,
    reader: Callable[..., DataFrameReader],
) -> None:
    name = topics.create("committed", 3, message_timestamp_type="LogAppendTime", **CONSOLIDATED)
    for part in range(6):
        topics.produce(name, messages(600, 3, 600 * part), "zstd" if part % 2 else "none")
    expected = topics.rows(name, 3)
    told: list[str] = []
    first = commit_segments.run(spark, job(broker, name), told.append)
    assert first.segments >= 3
    assert first.bytes > 3 * SEGMENT_BYTES
    assert told[0].startswith("round 1: ")
    assert first.gets <= 1.5 * first.objects
    for partition in range(3):
        runs = segments(broker, name, partition)
        assert runs[0][0] == 0
        assert all(one[1] + 1 == other[0] for one, other in pairwise(runs))
        assert runs[-1][1] + 1 == first.next_offsets[name][partition]
    # The WAL is let go, and nobody notices.
    until(lambda: wal_start(broker, name, 0) == first.next_offsets[name][0], "the WAL is pruned")
    assert topics.rows(name, 3) == expected
    rows = reader(subscribe=name, startingOffsets="earliest").load().collect()
    assert sorted((row.partition, row.offset) for row in rows) == sorted(
        (row.partition, row.offset) for row in expected
    )
    again = commit_segments.run(spark, job(broker, name))
    assert (again.segments, again.bytes, again.gets) == (0, 0, 0)
    topics.produce(name, messages(30, 3, 3600))
    waiting = commit_segments.run(spark, job(broker, name))
    assert waiting.segments == 0
    assert waiting.waiting_bytes > 0
    last = commit_segments.run(spark, job(broker, name, tail=True))
    assert last.segments == 3
    assert last.next_offsets == {name: dict.fromkeys(range(3), 1210)}
    assert len(topics.rows(name, 3)) == 3630


def wal_start(broker: Broker, topic: str, partition: int) -> int:
    image, tiered = broker.node.image.topic(topic), broker.node._services.tiered
    assert image is not None
    assert tiered is not None
    source = tiered.consolidating.get(TopicIdPartition(image.topic_id, partition))
    assert source is not None
    return source.info.wal_start_offset


def test_several_topics_share_the_reads_of_their_objects(
    spark: SparkSession, broker: Broker, topics: Topics
) -> None:
    names = [topics.create(f"shared-{at}", 4, **CONSOLIDATED) for at in range(2)]
    for part in range(4):
        for name in names:
            topics.produce(name, messages(400, 4, 400 * part))
    done = commit_segments.run(spark, job(broker, *names, tail=True))
    assert done.segments >= 8
    # An object has batches of four partitions, and is read once for all of them.
    assert done.gets == done.objects
    for name in names:
        assert done.next_offsets[name] == dict.fromkeys(range(4), 400)
        assert len(topics.rows(name, 4)) == 1600


def test_a_job_that_fails_leaves_nothing_and_the_next_one_does_it(
    spark: SparkSession, broker: Broker, topics: Topics, bucket: Path
) -> None:
    name = topics.create("failing", 2, **CONSOLIDATED)
    topics.produce(name, messages(400, 2))

    def interrupted(*given: Any) -> None:
        run_tasks(*given)
        raise KeyboardInterrupt

    with (
        mock.patch.object(commit_segments, "run_tasks", interrupted),
        pytest.raises(KeyboardInterrupt),
    ):
        commit_segments.run(spark, job(broker, name, tail=True))
    folder = next((bucket / "tiered").glob(f"{name}-*"))
    until(lambda: not any(path.is_file() for path in folder.rglob("*")), "it is cleaned")
    done = commit_segments.run(spark, job(broker, name, tail=True))
    assert done.next_offsets == {name: {0: 200, 1: 200}}
    assert len(topics.rows(name, 2)) == 400


def test_a_job_that_was_killed_is_named_and_taken_over(
    spark: SparkSession, broker: Broker, topics: Topics
) -> None:
    name = topics.create("killed", 1, **CONSOLIDATED)
    topics.produce(name, messages(100, 1))
    gone = JobByHand(broker.bootstrap, name)
    until(lambda: not gone.start().error)
    gone.put(gone.granted((0, 99)))
    with pytest.raises(KafkaError, match="killed-0: another job assembles offsets 0 to 99"):
        commit_segments.run(spark, job(broker, name, tail=True))
    done = commit_segments.run(spark, job(broker, name, tail=True, take_over=True))
    assert (done.segments, done.next_offsets) == (1, {name: {0: 100}})


def test_topics_that_are_not_for_jobs_are_named(
    spark: SparkSession, broker: Broker, topics: Topics
) -> None:
    classic = topics.create("committed-classic", 1, diskless=False)
    with pytest.raises(KafkaError, match="committed-classic is not diskless"):
        commit_segments.run(spark, job(broker, classic))
    own = topics.create("committed-own", 1, remote_storage_enable="true")
    until(lambda: "assembled by its leaders" in _refusal(spark, broker, own))
    with pytest.raises(KafkaError, match="no-such-topic"):
        commit_segments.run(spark, job(broker, "no-such-topic"))


def _refusal(spark: SparkSession, broker: Broker, topic: str) -> str:
    try:
        commit_segments.run(spark, job(broker, topic))
    except KafkaError as error:
        return str(error)
    return ""
