"""Transactions over several brokers: coordinator, partitions and offsets lead on different ones."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.testing.cluster import Cluster

DEADLINE_SECONDS = 120.0
PARTITIONS = 6
SETTINGS = {"transaction.state.log.num.partitions": "3", "log.level": "ERROR"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, settings=SETTINGS) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("source", "sink")]
        for future in admin.create_topics(topics).values():
            future.result(DEADLINE_SECONDS)
        yield running


def transactional(cluster: Cluster, name: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": name,
            "log_level": 0,
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    patiently(lambda: producer.init_transactions(DEADLINE_SECONDS))
    return producer


def patiently(call: object) -> None:
    """Retry retriable errors, as librdkafka's documentation says."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            call()  # type: ignore[operator]
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def committed_values(cluster: Cluster, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("sink", index, 0) for index in range(PARTITIONS)])
    found: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(ended) < PARTITIONS or len(found) < count:
        assert time.monotonic() < deadline, (len(found), ended)
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error() is not None:
            if message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            continue
        ended.discard(message.partition())
        found.append(message.value())
    consumer.close()
    return sorted(found)


def test_transactions_span_brokers_and_survive_the_failure_of_one(cluster: Cluster) -> None:
    expected = []
    producers = [transactional(cluster, f"tx-{number}") for number in range(4)]
    for step in range(6):
        if step == 3:
            cluster.brokers[0].kill()
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            values = [b"%d-%d-%d" % (step, number, index) for index in range(PARTITIONS)]
            for index, value in enumerate(values):
                producer.produce("sink", value, partition=index)
            if (step + number) % 3 == 2:
                patiently(lambda one=producer: one.abort_transaction(DEADLINE_SECONDS))
                continue
            patiently(lambda one=producer: one.commit_transaction(DEADLINE_SECONDS))
            expected += values
    assert committed_values(cluster, len(expected)) == sorted(expected)


def test_offsets_are_committed_with_the_results(cluster: Cluster) -> None:
    feeder = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(120):
        feeder.produce("source", b"%03d" % number, partition=number % PARTITIONS)
    assert feeder.flush(DEADLINE_SECONDS) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "mover",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe(["source"])
    producer = transactional(cluster, "mover")
    moved = 0
    deadline = time.monotonic() + DEADLINE_SECONDS
    while moved < 120:
        assert time.monotonic() < deadline, moved
        messages = [one for one in consumer.consume(40, 1.0) if one.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce("sink", message.value(), partition=message.partition())
        positions = consumer.position(consumer.assignment())
        group = consumer.consumer_group_metadata()
        patiently(lambda p=positions, g=group: producer.send_offsets_to_transaction(p, g, 60))
        patiently(lambda: producer.commit_transaction(DEADLINE_SECONDS))
        moved += len(messages)
    stored = consumer.committed([TopicPartition("source", i) for i in range(PARTITIONS)], 60)
    assert [one.offset for one in stored] == [20] * PARTITIONS
    consumer.close()
    assert committed_values(cluster, 120) == [b"%03d" % number for number in range(120)]
