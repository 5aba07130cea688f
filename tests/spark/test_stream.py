"""Streaming reads by a real Spark: checkpoints, restarts, triggers, growing topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from skylog.testing import Broker
from tests.spark.support import SECONDS_MAX, Message, Row, Topics, poll_until, rows_of


def numbered(count: int, partitions: int, first: int = 0) -> list[Message]:
    return [
        Message(b"%d" % i, partition=i % partitions, headers=[("n", b"%d" % i)])
        for i in range(first, first + count)
    ]


class Job:
    """A query with its checkpoint, which can be restarted; keeps the rows of each batch."""

    def __init__(self, spark: SparkSession, broker: Broker, checkpoint: Path) -> None:
        self._spark = spark
        self._bootstrap = broker.bootstrap
        self.checkpoint = checkpoint
        self.batches: dict[int, list[Row]] = {}
        self.fails_in: int | None = None

    def start(self, *, now: bool = True, **options: str) -> StreamingQuery:
        given = {"kafka.bootstrap.servers": self._bootstrap, "includeHeaders": "true", **options}
        frame = self._spark.readStream.format("skylog").options(**given).load()
        writer = frame.writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        trigger = {"availableNow": True} if now else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start()

    def run(self, **options: str) -> dict[int, int]:
        """Read what is available now; returns the number of rows of each micro-batch."""
        self.batches.clear()
        query = self.start(**options)
        assert query.awaitTermination(SECONDS_MAX)
        return {batch: len(rows) for batch, rows in self.batches.items()}

    @property
    def rows(self) -> list[Row]:
        return sorted(row for rows in self.batches.values() for row in rows)

    def offsets(self, batch: int) -> object:
        """The end of a micro-batch in the checkpoint."""
        return json.loads((self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1])

    def _keep(self, frame: DataFrame, batch: int) -> None:
        if batch == self.fails_in:
            raise RuntimeError("the sink is broken")
        self.batches[batch] = rows_of(frame)


@pytest.fixture
def job(spark: SparkSession, broker: Broker, tmp_path: Path) -> Job:
    return Job(spark, broker, tmp_path / "checkpoint")


def test_what_is_available_now_in_portions_and_then_the_rest(
    broker: Broker, topics: Topics, job: Job
) -> None:
    name = topics.create("stream-now", 2)
    topics.produce(name, numbered(50, 2))
    options = {"subscribe": name, "startingOffsets": "earliest", "publish.group.id": "spark-now"}
    assert job.run(**options, maxOffsetsPerTrigger="30") == {0: 30, 1: 20}
    assert job.rows == topics.rows(name, 2)
    assert (job.offsets(0), job.offsets(1)) == (
        {name: {"0": 15, "1": 15}},
        {name: {"0": 25, "1": 25}},
    )
    assert _committed(broker, "spark-now", name, 2) == [25, 25]
    # Another run resumes where this one ended, and reads a new partition, too.
    topics.grow(name, 3)
    topics.produce(name, numbered(30, 3, 50))
    assert job.run(**options) == {2: 30}
    assert job.rows == [row for row in topics.rows(name, 3) if int(row.value or 0) >= 50]
    assert job.offsets(2) == {name: {"0": 35, "1": 35, "2": 10}}
    assert _committed(broker, "spark-now", name, 3) == [35, 35, 10]
    assert job.run(**options) == {}


def test_a_running_query_follows_its_topics(topics: Topics, job: Job) -> None:
    topics.create("stream-a")
    topics.create("stream-b", diskless=False)
    topics.produce("stream-a", numbered(5, 1))
    query = job.start(now=False, subscribePattern="^stream-[abc]$")
    try:
        # It starts at the latest offsets, which the first micro-batch records.
        poll_until((job.checkpoint / "commits" / "0").exists, query)
        assert job.offsets(0) == {"stream-a": {"0": 5}, "stream-b": {"0": 0}}
        topics.produce("stream-b", numbered(3, 1))
        poll_until(lambda: len(job.rows) == 3, query)
        topics.create("stream-c")
        topics.grow("stream-a", 2)
        topics.produce("stream-a", numbered(4, 2))
        topics.produce("stream-c", numbered(2, 1))
        poll_until(lambda: len(job.rows) == 9, query)
        ends = {"stream-a": {"0": 7, "1": 2}, "stream-b": {"0": 3}, "stream-c": {"0": 2}}
        poll_until(lambda: _latest(query) == ends, query)
    finally:
        query.stop()
    assert job.rows == [
        *(row for row in topics.rows("stream-a", 2) if row.partition or row.offset >= 5),
        *topics.rows("stream-b", 1),
        *topics.rows("stream-c", 1),
    ]


def test_a_crash_in_the_first_micro_batch_loses_nothing(topics: Topics, job: Job) -> None:
    name = topics.create("stream-crash")
    topics.produce(name, numbered(5, 1))
    job.fails_in = 0
    with pytest.raises(StreamingQueryException, match="the sink is broken"):
        job.run(subscribe=name)
    job.fails_in = 1
    topics.produce(name, numbered(3, 1, 5))
    with pytest.raises(StreamingQueryException, match="the sink is broken"):
        job.run(subscribe=name)
    topics.produce(name, numbered(2, 1, 8))
    job.fails_in = None
    # The failed micro-batch is read again unchanged.
    assert job.run(subscribe=name) == {1: 3, 2: 2}
    assert [row.value for row in job.rows] == [b"5", b"6", b"7", b"8", b"9"]


def test_lost_data_ends_the_query_with_one_sentence(topics: Topics, job: Job) -> None:
    name = topics.create("stream-lost")
    topics.produce(name, numbered(5, 1))
    assert job.run(subscribe=name, startingOffsets="earliest") == {0: 5}
    topics.produce(name, numbered(5, 1))
    topics.delete_records(name, 0, 8)
    with pytest.raises(StreamingQueryException) as raised:
        job.run(subscribe=name)
    assert "data is lost: offsets 5 to 7 of stream-lost-0 are gone" in str(raised.value)
    assert job.run(subscribe=name, failOnDataLoss="false") == {1: 2}
    with pytest.raises(Exception, match="endingOffsets is not allowed in a streaming query"):
        job.run(subscribe=name, endingOffsets="latest")


def _latest(query: StreamingQuery) -> object:
    """The latest offsets of the topics, as the query reports them."""
    progress = query.lastProgress
    return None if progress is None else json.loads(progress["sources"][0]["latestOffset"])


def _committed(broker: Broker, group: str, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        asked = [TopicPartition(topic, index) for index in range(partitions)]
        return [found.offset for found in consumer.committed(asked, SECONDS_MAX)]
    finally:
        consumer.close()
