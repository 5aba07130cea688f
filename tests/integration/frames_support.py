"""Records of every kind, produced and consumed by librdkafka, as rows of a frame."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

import skylog
from skylog.bulk.frame import TopicRead
from skylog.testing import Broker

SECONDS_MAX = 60.0
PARTITIONS = 3
BASE_MS = 1_700_000_000_000


def create(broker: Broker, name: str, **configs: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1, config=configs)]).values():
        future.result()
    return name


def record(index: int) -> dict[str, Any]:
    """Every kind of record: with and without key, value, headers."""
    headers = [("h", b"%d" % index), ("h", None), ("empty", b"")]
    return {
        "key": (None, b"", b"key-%d" % index)[index % 3],
        "value": (b"value-%d" % index * (index % 40), None, b"")[0 if index % 11 else index % 3],
        "headers": headers[: index % 4] or None,
        "timestamp": BASE_MS + index * 10,
        "partition": index % PARTITIONS,
    }


def produce(broker: Broker, topic: str, count: int, **settings: object) -> None:
    """Produce small batches, so that ranges split them and windows hold several."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "batch.num.messages": 17,
            "linger.ms": 5,
            "log_level": 0,
            **settings,
        }
    )
    failures: list[object] = []
    for index in range(count):
        producer.produce(
            topic,
            on_delivery=lambda error, _: failures.append(error) if error else None,
            **record(index),
        )
        producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0
    assert not failures


def consumed(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """What librdkafka reads, as our rows, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "frames",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    rows: list[dict[str, Any]] = []
    try:
        bounds = {
            index: consumer.get_watermark_offsets(TopicPartition(topic, index), SECONDS_MAX)
            for index in range(PARTITIONS)
        }
        consumer.assign([TopicPartition(topic, at, low) for at, (low, _) in bounds.items()])
        wanted = sum(high - low for low, high in bounds.values())
        deadline = time.monotonic() + SECONDS_MAX
        while len(rows) < wanted:
            assert time.monotonic() < deadline, (len(rows), wanted)
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None
                rows.append(row_of(message))
    finally:
        consumer.close()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def row_of(message: Any) -> dict[str, Any]:
    kind, time_ms = message.timestamp()
    headers = message.headers()
    return {
        "key": message.key(),
        "value": message.value(),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": datetime.fromtimestamp(time_ms / 1000, UTC),
        "timestampType": int(kind == TIMESTAMP_LOG_APPEND_TIME),
        "headers": [{"key": key, "value": value} for key, value in headers] if headers else None,
    }


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    return list(table.to_pylist())


def read(broker: Broker, topic: str, **options: Any) -> TopicRead:
    return skylog.read(topic, **{"bootstrap": broker.bootstrap, **options})
