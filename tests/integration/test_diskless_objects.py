"""WAL objects in the bucket, read by a parser that shares no code with the broker."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from crc32c import crc32c

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.testing import Broker
from skylog.wire.messages import produce_request
from skylog.wire.messages.metadata_request import MetadataRequest
from skylog.wire.records import encode_batch
from tests.integration.diskless_support import create_topic
from tests.integration.diskless_uploader import SETTINGS, found
from tests.integration.wire_client import Wire

# Created in an order that is not that of their names.
TOPICS = ("beta", "alpha", "alpha-2")
PARTITIONS = 12
ROUNDS = 3
BATCH_OVERHEAD = 12
VALUES_AT = 61


class StoredBatch(NamedTuple):
    """A record batch of magic 2 in an object, and its position."""

    at: int
    size: int
    base_offset: int
    last_offset_delta: int
    producer_id: int
    base_sequence: int
    data: bytes


def parse_object(data: bytes) -> list[StoredBatch]:
    """By the specification: a zero byte, then batches, and nothing else."""
    assert data[0] == 0  # ENG-19
    batches = []
    at = 1
    while at < len(data):
        base_offset, length, _epoch, magic, crc = struct.unpack_from(">qiibI", data, at)
        size = BATCH_OVERHEAD + length
        whole = data[at : at + size]
        assert magic == 2
        assert len(whole) == size
        assert crc32c(whole[21:]) == crc
        (delta,) = struct.unpack_from(">i", whole, 23)
        producer_id, _, sequence = struct.unpack_from(">qhi", whole, 43)
        batches.append(StoredBatch(at, size, base_offset, delta, producer_id, sequence, whole))
        at += size
    assert at == len(data)  # ENG-22: every byte belongs to the header or to a batch
    return batches


def objects(broker: Broker) -> dict[str, bytes]:
    root = broker.directory / "diskless-objects"
    files = [path for path in (root / "wal").rglob("*") if path.is_file()]
    return {str(Path(path).relative_to(root)): path.read_bytes() for path in files}


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {
        **SETTINGS,
        "diskless.produce.adaptive": "false",
        "diskless.produce.commit.interval.ms": "300",
    }
    with Broker(settings) as running:
        yield running


def topic_ids(wire: Wire) -> dict[str, Uuid]:
    return {topic.name: topic.topic_id for topic in wire.ask(MetadataRequest(None)).topics}


def test_objects_hold_what_was_produced_where_the_coordinator_says(broker: Broker) -> None:
    # ENG-09, ENG-10, ENG-12 partly, ENG-15, ENG-19, ENG-20, ENG-21, ENG-22
    for topic in TOPICS:
        create_topic(broker.bootstrap, topic, PARTITIONS)
    producers = [Producer({"bootstrap.servers": broker.bootstrap}) for _ in range(2)]
    produced: dict[tuple[str, int], set[bytes]] = defaultdict(set)
    for turn in range(ROUNDS):
        for number, producer in enumerate(producers):
            for topic in TOPICS:
                for partition in range(PARTITIONS):
                    value = b"%s/%d/%d/%d." % (topic.encode(), partition, number, turn)
                    producer.produce(topic, value, partition=partition)
                    produced[topic, partition].add(value)
        for producer in producers:
            assert producer.flush(60) == 0

    stored = objects(broker)
    parsed = {key: {batch.at: batch for batch in parse_object(stored[key])} for key in stored}
    # Requests of several clients share objects: far fewer than requests.
    assert len(stored) < ROUNDS * len(producers) * len(TOPICS) * PARTITIONS / 4
    places: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    with Wire(broker.address("BROKERS")) as wire:
        ids = topic_ids(wire)
        for (topic, partition), values in produced.items():
            left = set(values)
            expected_offset = 0
            for one in found(wire, ids[topic], partition=partition).batches:
                batch = parsed[one.object_key][one.byte_offset]
                assert batch.size == one.byte_size
                assert one.base_offset == expected_offset
                assert one.last_offset == one.base_offset + batch.last_offset_delta
                # Offsets in the object are the producer's own.
                assert batch.base_offset == 0
                expected_offset = one.last_offset + 1
                here = {value for value in left if value in batch.data[VALUES_AT:]}
                assert len(here) == batch.last_offset_delta + 1
                left -= here
                places[one.object_key].append((one.byte_offset, topic, partition))
            assert left == set()
            assert expected_offset == len(values)
    for key, held in places.items():
        held.sort()
        assert [at for at, _, _ in held] == sorted(parsed[key])
        order = [(topic, partition) for _, topic, partition in held]
        assert all(before <= after for before, after in pairwise(order))
        assert len([run for run, _ in groupby(order)]) == len(set(order))
    assert max(len({topic for _, topic, _ in held}) for held in places.values()) == len(TOPICS)


def test_the_bytes_of_a_refused_batch_are_in_no_coordinate(broker: Broker) -> None:
    # ENG-08, ENG-22
    create_topic(broker.bootstrap, "t", 3)
    m = produce_request

    def batch(value: bytes, sequence: int) -> bytes:
        return encode_batch(
            [(None, value)],
            timestamp=1_700_000_000_000,
            producer_id=77,
            producer_epoch=0,
            base_sequence=sequence,
        )

    with Wire(broker.address("BROKERS")) as wire:
        topic_id = topic_ids(wire)["t"]

        def send(*parts: bytes) -> list[int]:
            data = [m.PartitionProduceData(index, part) for index, part in enumerate(parts)]
            request = m.ProduceRequest(
                acks=-1,
                timeout_ms=30_000,
                topic_data=[m.TopicProduceData("t", partition_data=data)],
            )
            answer = wire.ask(request, 9).responses[0]
            return [part.error_code for part in answer.partition_responses]

        assert send(batch(b"first", 0)) == [0]
        damaged = bytearray(batch(b"damaged", 0))
        damaged[-1] ^= 1
        assert send(batch(b"out of order", 5), batch(b"second", 0), bytes(damaged)) == [
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            0,
            ErrorCode.CORRUPT_MESSAGE,
        ]
        coordinates = [
            (one.object_key, one.byte_offset)
            for partition in range(3)
            for one in found(wire, topic_id, partition=partition).batches
        ]
    stored = {
        (key, batch.at): batch.data
        for key, data in objects(broker).items()
        for batch in parse_object(data)
    }
    held = [
        value for value in (b"first", b"second", b"out of order", b"damaged")
        for data in stored.values() if data.endswith(value + b"\0")
    ]  # fmt: skip
    # Refused by the coordinator after the upload: its bytes stay. Refused before: none.
    assert sorted(held) == [b"first", b"out of order", b"second"]
    assert len(coordinates) == 2
    assert all(b"out of order" not in stored[place] for place in coordinates)
