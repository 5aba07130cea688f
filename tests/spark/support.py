"""Topics written and read by librdkafka, to compare rows with; waiting for queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

SECONDS_MAX = 90.0


class Row(NamedTuple):
    """A record as both Spark and librdkafka show it; the time is in milliseconds."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...] | None


class Message(NamedTuple):
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int = 1_700_000_000_000
    headers: Sequence[tuple[str, bytes | None]] = ()


class Topics:
    """Topics of a cluster."""

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self.settings = {"bootstrap.servers": bootstrap, "log_level": 0, **settings}
        self.admin = AdminClient(self.settings)

    def create(
        self, name: str, partitions: int = 1, *, diskless: bool = True, **configs: str
    ) -> str:
        # Old records stay, whatever the broker's retention.
        config = {"retention.ms": "-1"}
        config |= {key.replace("_", "."): value for key, value in configs.items()}
        if diskless:
            config["diskless.enable"] = "true"
        futures = self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        futures[name].result()
        return name

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result()

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result()

    def delete_records(self, name: str, partition: int, before: int) -> None:
        where = TopicPartition(name, partition, before)
        admin = AdminClient(self.settings)  # a new client knows new partitions
        admin.delete_records([where])[where].result()

    def produce(self, name: str, messages: Iterable[Message], codec: str = "none") -> None:
        failures: list[Any] = []
        producer = Producer({**self.settings, "compression.type": codec, "linger.ms": 5})
        for message in messages:
            producer.produce(
                name,
                message.value,
                message.key,
                message.partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
                timestamp=message.timestamp,
                headers=list(message.headers),
            )
            producer.poll(0)
        assert producer.flush(SECONDS_MAX) == 0
        assert not failures

    def rows(self, name: str, partitions: int) -> list[Row]:
        """Every record of a topic as librdkafka consumes it, in order."""
        consumer = Consumer({**self.settings, "group.id": "none", "enable.partition.eof": False})
        found: list[Row] = []
        try:
            wanted = 0
            for index in range(partitions):
                low, high = consumer.get_watermark_offsets(TopicPartition(name, index), SECONDS_MAX)
                wanted += high - low
            consumer.assign([TopicPartition(name, index, -2) for index in range(partitions)])
            deadline = time.monotonic() + SECONDS_MAX
            while len(found) < wanted:
                assert time.monotonic() < deadline, f"{len(found)} of {wanted} records"
                for message in consumer.consume(1000, 0.2):
                    assert message.error() is None, message.error()
                    found.append(_row(message))
        finally:
            consumer.close()
        return sorted(found)


def _row(message: Any) -> Row:
    kind, timestamp = message.timestamp()
    headers = message.headers()
    return Row(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        timestamp,
        kind - 1,  # librdkafka's enum starts with "not available"
        tuple((key, value) for key, value in headers) if headers else None,
    )


def rows_of(frame: DataFrame) -> list[Row]:
    """All rows of a DataFrame with all columns, in order."""
    has_headers = "headers" in frame.columns
    return sorted(
        Row(
            row["topic"],
            row["partition"],
            row["offset"],
            None if row["key"] is None else bytes(row["key"]),
            None if row["value"] is None else bytes(row["value"]),
            row["milliseconds"],
            row["timestampType"],
            _headers(row["headers"]) if has_headers else None,
        )
        for row in frame.selectExpr("*", "unix_millis(timestamp) as milliseconds").collect()
    )


def _headers(value: Any) -> tuple[tuple[str, bytes | None], ...] | None:
    if value is None:
        return None
    return tuple(
        (header["key"], None if header["value"] is None else bytes(header["value"]))
        for header in value
    )


def poll_until(condition: Callable[[], bool], query: StreamingQuery | None = None) -> None:
    """Wait for a condition; a query that fails meanwhile raises its error."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if query is not None and query.exception() is not None:
            raise AssertionError(str(query.exception()))
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.05)
