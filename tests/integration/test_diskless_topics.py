"""Diskless topics through a broker, with real clients."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from skylog.diskless.layout import batches_of
from skylog.testing import Broker

SETTINGS = {"diskless.metadata.topic.num.partitions": "3", "log.level": "ERROR"}
DEADLINE_SECONDS = 60.0


def create(broker: Broker, name: str, partitions: int = 1, **configs: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    settings = {"diskless.enable": "true", **configs}
    topic = NewTopic(name, partitions, 1, config=settings)
    for future in admin.create_topics([topic]).values():
        future.result()
    return admin


def produce(
    broker: Broker, topic: str, values: list[bytes], partitions: int, **more: object
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 2, **more})
    errors: list[object] = []
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            str(number).encode(),
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert errors == []


def consume(broker: Broker, topic: str, count: int, partitions: int) -> dict[int, list[bytes]]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: dict[int, list[bytes]] = defaultdict(list)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while sum(map(len, found.values())) < count and time.monotonic() < deadline:
        for message in consumer.consume(1000, 1):
            assert message.error() is None
            values = found[message.partition()]
            assert message.offset() == len(values)
            values.append(message.value())
    consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_comes_back_in_order(broker: Broker, codec: str) -> None:
    # ENG-01, ENG-18
    topic = f"all-{codec}"
    create(broker, topic, 4)
    values = [b"%d" % number * 20 for number in range(2_000)]
    produce(broker, topic, values, 4, **{"compression.type": codec, "enable.idempotence": True})
    found = consume(broker, topic, len(values), 4)
    assert {index: found[index] for index in range(4)} == {
        index: values[index::4] for index in range(4)
    }


def test_classic_and_diskless_topics_side_by_side(broker: Broker) -> None:
    # ENG-02 partly: without tiered storage
    create(broker, "side-diskless", 2)
    create(broker, "side-classic", 2, **{"diskless.enable": "false"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number in range(500):
        for topic in ("side-classic", "side-diskless"):
            producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(DEADLINE_SECONDS) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "side",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["side-classic", "side-diskless"])
    found: dict[str, set[bytes]] = defaultdict(set)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while sum(map(len, found.values())) < 1_000 and time.monotonic() < deadline:
        for message in consumer.consume(1000, 1):
            found[message.topic()].add(message.value())
    consumer.close()
    assert found["side-classic"] == found["side-diskless"]
    assert len(found["side-diskless"]) == 500


def test_no_record_lies_in_a_local_log(broker: Broker) -> None:
    # ENG-04 partly
    create(broker, "nowhere", 1)
    produce(broker, "nowhere", [b"needle-in-a-bucket"], 1)
    assert not (broker.directory / "nowhere-0").exists()
    objects = [
        path for path in (broker.directory / "diskless-objects").rglob("*") if path.is_file()
    ]
    holding = [path for path in objects if b"needle-in-a-bucket" in path.read_bytes()]
    assert len(holding) == 1
    assert batches_of(holding[0].read_bytes())


def test_offsets_by_time_are_those_of_records(broker: Broker) -> None:
    admin = create(broker, "times", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    base = int(time.time() * 1000) - 100_000
    for number in range(10):
        producer.produce("times", b"%d" % number, partition=0, timestamp=base + number * 1000)
    assert producer.flush(DEADLINE_SECONDS) == 0
    partition = TopicPartition("times", 0)
    specs = {
        OffsetSpec.earliest(): 0,
        OffsetSpec.latest(): 10,
        OffsetSpec.for_timestamp(base + 4_500): 5,
        OffsetSpec.max_timestamp(): 9,
    }
    for spec, expected in specs.items():
        result = admin.list_offsets({partition: spec})[partition].result()
        assert result.offset == expected


def test_delete_records_moves_the_start(broker: Broker) -> None:
    admin = create(broker, "trimmed", 1)
    produce(broker, "trimmed", [b"%d" % number for number in range(20)], 1)
    target = TopicPartition("trimmed", 0, 12)
    assert admin.delete_records([target])[target].result().low_watermark == 12
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    assert consumer.get_watermark_offsets(TopicPartition("trimmed", 0)) == (12, 20)
    consumer.close()


def test_a_topic_cannot_change_its_kind(broker: Broker) -> None:
    admin = create(broker, "fixed", 1)
    resource = ConfigResource(
        ResourceType.TOPIC,
        "fixed",
        incremental_configs=[
            ConfigEntry("diskless.enable", "false", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    with pytest.raises(KafkaException, match="cannot become classic"):
        admin.incremental_alter_configs([resource])[resource].result()
    with pytest.raises(KafkaException, match="compact"):
        create(broker, "compacted", 1, **{"cleanup.policy": "compact"})


def test_a_long_poll_is_woken_by_a_commit(broker: Broker) -> None:
    # ENG-37 partly
    create(broker, "tail", 1)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "fetch.wait.max.ms": 30_000,
            "fetch.min.bytes": 1,
            "socket.timeout.ms": 60_000,
        }
    )
    consumer.assign([TopicPartition("tail", 0, 0)])
    assert consumer.poll(0.5) is None  # it is waiting at the broker now
    produce(broker, "tail", [b"news"], 1)
    message = consumer.poll(20)  # sooner than the end of the long poll
    assert message is not None
    assert message.value() == b"news"
    consumer.close()


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    # DC-26 partly
    values = [b"%d" % number for number in range(300)]
    with Broker(SETTINGS, directory=tmp_path) as broker:
        create(broker, "kept", 3)
        produce(broker, "kept", values, 3)
    for path in (tmp_path / "diskless-coordinators").rglob("state.sqlite*"):
        path.unlink()  # only a cache
    with Broker(SETTINGS, directory=tmp_path) as broker:
        produce(broker, "kept", values, 3)
        found = consume(broker, "kept", 600, 3)
    assert {index: found[index] for index in range(3)} == {
        index: values[index::3] * 2 for index in range(3)
    }


def test_invalid_coordinators_are_reported_at_creation() -> None:
    with Broker({"diskless.metadata.topic.replication.factor": "3", "log.level": "ERROR"}) as alone:
        with pytest.raises(KafkaException, match=r"diskless.metadata.topic.replication.factor=3"):
            create(alone, "lonely")
        admin = AdminClient({"bootstrap.servers": alone.bootstrap})
        assert "lonely" not in admin.list_topics(timeout=DEADLINE_SECONDS).topics
