"""The stream reader as Spark calls it, without Spark: offsets, limits, losses, progress."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from skylog.bulk.process import close_process
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ConfigError
from skylog.spark.errors import DataLossError, ReadError
from skylog.spark.options import parse_stream
from skylog.spark.stream import StreamReader
from skylog.testing import Broker
from tests.spark.secured import Secured
from tests.spark.support import Message, Topics

ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    yield
    close_process()


class Query:
    """What Spark does: start, ask for the latest offsets, read up to them."""

    def __init__(self, bootstrap: str, clock: ManualClock | None = None, **options: str) -> None:
        given = {"kafka.bootstrap.servers": bootstrap, **options}
        self.reader = StreamReader(parse_stream(given), clock)
        self.limit = self.reader.getDefaultReadLimit()
        self.position: dict[str, Any] | None = None

    def step(self) -> list[tuple[int, int]]:
        """One trigger: (partition, offset) of what it read."""
        start = self.reader.initialOffset() if self.position is None else self.position
        end = self.reader.latestOffset(start, self.limit)
        rows = self.read(start, end)
        self.position = end
        return rows

    def read(self, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
        found = []
        for part in self.reader.partitions(start, end):
            for batch in self.reader.read(part):
                rows = batch.select(["partition", "offset"]).to_pylist()
                found += [(row["partition"], row["offset"]) for row in rows]
        return sorted(found)


def numbered(count: int, partition: int = 0) -> list[Message]:
    return [Message(b"%d" % i, partition=partition) for i in range(count)]


def span(partition: int, start: int, end: int) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(start, end)]


def committed(broker: str, group: str, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": group, "log_level": 0})
    try:
        asked = [TopicPartition(topic, index) for index in range(partitions)]
        return [found.offset for found in consumer.committed(asked, 30)]
    finally:
        consumer.close()


def test_a_query_from_the_earliest_offsets(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-earliest", 2)
    topics.produce(name, [*numbered(5), *numbered(3, 1)])
    query = Query(broker.bootstrap, subscribe=name, startingOffsets="earliest")
    assert query.step() == span(0, 0, 5) + span(1, 0, 3)
    assert query.position == {name: {"0": 5, "1": 3}}
    assert query.reader.reportLatestOffset() == query.position
    assert query.step() == []
    topics.produce(name, numbered(2, 1))
    assert query.step() == span(1, 3, 5)


def test_a_query_from_the_latest_offsets_notes_them_down_first(
    broker: Broker, topics: Topics
) -> None:
    name = topics.create("s-latest")
    topics.produce(name, numbered(5))
    query = Query(broker.bootstrap, subscribe=name)
    start = query.reader.initialOffset()
    topics.produce(name, numbered(2))
    assert query.reader.initialOffset() == start == {name: {"0": 5}}
    assert query.step() == []
    assert query.position == start
    assert query.step() == span(0, 5, 7)
    # The first micro-batch again after a crash: it starts later now, and is still empty.
    again = Query(broker.bootstrap, subscribe=name)
    topics.grow(name, 2)
    topics.produce(name, numbered(1, 1))
    assert again.read(again.reader.initialOffset(), start) == []
    again.position = start
    assert again.step() == span(0, 5, 7) + span(1, 0, 1)


def test_starting_offsets_and_times(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-starts", 2)
    topics.produce(name, [Message(b"x", timestamp=1000 * (i + 1)) for i in range(10)])
    mixed = Query(
        broker.bootstrap, subscribe=name, startingOffsets=json.dumps({name: {"0": 7, "1": -1}})
    )
    assert mixed.reader.initialOffset() == {name: {"0": 7, "1": 0}}
    assert (mixed.step(), mixed.step()) == ([], span(0, 7, 10))  # partition 1 begins at latest
    by_time = {"startingTimestamp": "5500", "startingOffsetsByTimestampStrategy": "latest"}
    assert Query(broker.bootstrap, subscribe=name, **by_time).reader.initialOffset() == {
        name: {"0": 5, "1": 0}
    }
    beyond = Query(
        broker.bootstrap, subscribe=name, startingOffsets=json.dumps({name: {"0": 11, "1": 0}})
    )
    with pytest.raises(ConfigError, match=f"11 for {name}-0, which ends at 10"):
        beyond.reader.initialOffset()


def test_limits_per_trigger(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-limits", 2)
    topics.produce(name, [*numbered(30), *numbered(10, 1)])
    query = Query(
        broker.bootstrap, subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger="20"
    )
    assert query.limit == ReadMaxRows(20)
    assert query.step() == span(0, 0, 15) + span(1, 0, 5)
    topics.grow(name, 3)
    topics.produce(name, numbered(20, 2))
    assert query.step() == span(0, 15, 22) + span(1, 5, 7) + span(2, 0, 10)
    query.limit = ALL
    assert query.step() == span(0, 22, 30) + span(1, 7, 10) + span(2, 10, 20)


def test_few_rows_wait_for_more(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-few")
    clock = ManualClock()
    few = {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "12", "maxTriggerDelay": "60s"}
    query = Query(broker.bootstrap, clock, subscribe=name, startingOffsets="earliest", **few)
    assert Query(broker.bootstrap, subscribe=name, minOffsetsPerTrigger="10").limit == ReadMinRows(
        10
    )
    topics.produce(name, numbered(4))
    assert query.step() == span(0, 0, 4)  # the first one does not wait
    topics.produce(name, numbered(9))
    assert query.step() == []
    clock.advance(59_999)
    assert query.step() == []
    clock.advance(1)
    assert query.step() == span(0, 4, 13)
    topics.produce(name, numbered(15))
    assert query.step() == span(0, 13, 25)
    assert query.step() == []


def test_what_is_available_now(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-now")
    topics.produce(name, numbered(10))
    limits = {"maxOffsetsPerTrigger": "6", "minOffsetsPerTrigger": "6"}
    query = Query(broker.bootstrap, subscribe=name, startingOffsets="earliest", **limits)
    query.reader.prepareForTriggerAvailableNow()
    assert query.step() == span(0, 0, 6)
    topics.produce(name, numbered(10))
    assert query.step() == span(0, 6, 10)  # though they are fewer than the minimum
    assert query.step() == []


# Losses -----------------------------------------------------------------------------------


def at(bootstrap: str, name: str, position: dict[str, Any], **options: str) -> Query:
    """A query that resumes from a checkpoint."""
    query = Query(bootstrap, subscribe=name, **options)
    query.position = position
    return query


def test_retention_overtakes_a_query(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-retention")
    topics.produce(name, numbered(10))
    topics.delete_records(name, 0, 6)
    with pytest.raises(DataLossError, match=f"offsets 2 to 5 of {name}-0 are gone"):
        at(broker.bootstrap, name, {name: {"0": 2}}).step()
    going_on = at(broker.bootstrap, name, {name: {"0": 2}}, failOnDataLoss="false")
    assert going_on.step() == span(0, 6, 10)
    topics.grow(name, 2)
    topics.produce(name, numbered(3, 1))
    topics.delete_records(name, 1, 1)
    with pytest.raises(DataLossError, match=f"{name}-1 is new but begins at 1"):
        at(broker.bootstrap, name, {name: {"0": 10}}).step()


def test_topics_that_are_deleted_or_made_anew(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-anew")
    topics.produce(name, numbered(5))
    running = Query(broker.bootstrap, subscribe=name, startingOffsets="earliest")
    assert running.step() == span(0, 0, 5)
    topics.delete(name)
    gone = f"{name}-0 is deleted"
    with pytest.raises(DataLossError, match=gone):
        running.step()
    with pytest.raises(DataLossError, match=gone):
        at(broker.bootstrap, name, {name: {"0": 5}}).step()
    options = {"failOnDataLoss": "false", "publish.group.id": "deleted"}
    assert at(broker.bootstrap, name, {name: {"0": 5}}, **options).step() == []
    with pytest.raises(ReadError, match=f"there is no topic {name}"):
        Query(broker.bootstrap, subscribe=name).step()
    topics.create(name)
    topics.produce(name, numbered(3))
    with pytest.raises(DataLossError, match="ends at 3, before 5"):
        at(broker.bootstrap, name, {name: {"0": 5}}).step()
    going_on = at(broker.bootstrap, name, {name: {"0": 5}}, failOnDataLoss="false")
    assert going_on.step() == span(0, 0, 3)
    topics.produce(name, numbered(9))
    # Only a running query can know: the offsets alone look valid.
    with pytest.raises(DataLossError, match=f"topic {name} was deleted and created again"):
        running.step()


def test_offsets_of_another_source(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-other")
    with pytest.raises(ConfigError, match="belongs to another source"):
        at(broker.bootstrap, name, {"logOffset": 5}).step()


# Progress ---------------------------------------------------------------------------------


def test_progress_is_published_as_a_group(broker: Broker, topics: Topics) -> None:
    name = topics.create("s-group", 2)
    topics.produce(name, [*numbered(5), *numbered(3, 1)])
    options = {"subscribe": name, "startingOffsets": "earliest", "publish.group.id": "shown"}
    query = Query(broker.bootstrap, **options)
    query.step()
    assert committed(broker.bootstrap, "shown", name, 2) == [0, 0]  # nothing is done yet
    query.step()
    assert committed(broker.bootstrap, "shown", name, 2) == [5, 3]


def test_progress_that_may_not_be_published_fails_at_once() -> None:
    with Secured() as secured:
        name = secured.topics("admin").create("s-denied")
        secured.allow("alice", AclOperation.READ, name)
        options = {**secured.options("alice"), "subscribe": name, "publish.group.id": "g"}
        with pytest.raises(ReadError, match="may not commit offsets of group g"):
            Query(secured.bootstrap, **options).step()
        secured.allow("alice", AclOperation.READ, "g", ResourceType.GROUP)
        query = Query(secured.bootstrap, **options)
        assert query.step() == []
        secured.topics("admin").produce(name, numbered(2))
        assert query.step() == span(0, 0, 2)
