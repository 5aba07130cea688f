"""Compacted topics as clients see them, and a broker that is killed before each step of a pass."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest

from skylog.log.config import LogConfig
from skylog.testing import Broker
from skylog.wire.records import decode_records
from tests.integration.processes import BrokerProcess
from tests.unit.log.support import open_log, read_batches
from tests.waiting import until

QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}
TOPIC = "compacted"
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "0",
}
CLEANER = {"log.cleaner.backoff.ms": "50"}
WAIT_SECONDS = 60

# Makes the process kill itself before it changes a file of the compaction.
FAIL_POINT = """
import os, signal
from skylog.log.files import Files
left = [{changes}]
def mortal(name):
    original = getattr(Files, name)
    def call(self, *arguments, **named):
        names = [a for a in arguments if isinstance(a, str)]
        if any(part in name for name in names for part in (".cleaned", ".swap", ".log.deleted")):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return original(self, *arguments, **named)
    setattr(Files, name, call)
for name in ("create", "write_all", "sync", "rename", "set_modified"):
    mortal(name)
"""


def create(address: str, configs: dict[str, str], partitions: int = 1) -> None:
    admin = confluent.AdminClient({"bootstrap.servers": address, **QUIET})
    topic = confluent.NewTopic(TOPIC, partitions, config=configs)
    admin.create_topics([topic])[TOPIC].result(30)


def produce(address: str, pairs: list[tuple[str, str | None]], **settings: Any) -> list[int]:
    """The offsets of acknowledged records."""
    offsets: list[int] = []
    faults: list[Any] = []

    def told(error: Any, message: Any) -> None:
        if error is None:
            offsets.append(message.offset())
        else:
            faults.append(error)

    producer = confluent_kafka.Producer({"bootstrap.servers": address, **QUIET, **settings})
    for key, value in pairs:
        producer.produce(TOPIC, value, key, on_delivery=told)
        producer.poll(0)
    producer.flush(30)
    assert not faults or settings
    return offsets


def consume(address: str, end: int) -> list[tuple[int, str, str | None]]:
    """Everything from the beginning up to the offset ``end``."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            **QUIET,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[int, str, str | None]] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            if message.offset() >= end:
                break
            continue
        value = message.value()
        found.append((message.offset(), message.key().decode(), value.decode() if value else None))
    consumer.close()
    return found


def log_bytes(directory: Path) -> int:
    total = 0
    for path in directory.glob("*.log"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_consumer_gets_the_newest_of_each_key(tmp_path: Path, codec: str) -> None:
    with Broker({**CLEANER, "log.dirs": str(tmp_path)}) as broker:
        create(broker.bootstrap, COMPACTED)
        pairs: list[tuple[str, str | None]] = []

        def write(more: list[tuple[str, str | None]]) -> None:
            pairs.extend(more)
            how = {"compression.type": codec, "batch.num.messages": 8}
            assert produce(broker.bootstrap, more, **how)[-1] == len(pairs) - 1

        write([(f"key-{number % 10}", f"value {number}") for number in range(3000)])
        dead = {f"key-{number}" for number in range(5)}
        write([(key, None) for key in sorted(dead)])

        def is_compacted() -> bool:
            # A tombstone is removed by the pass after the one that has seen it.
            write([(f"filler-{number % 3}", str(number) * 150) for number in range(20)])
            found = consume(broker.bootstrap, len(pairs))
            newest = {key: (offset, key, value) for offset, (key, value) in enumerate(pairs)}
            for state in newest.values():
                assert state in found or state[1] in dead
            assert all(pairs[offset] == (key, value) for offset, key, value in found)
            return len(found) < 100 and not ({key for _, key, _ in found} & dead)

        until(is_compacted, "the log is not compacted")


def test_records_without_a_key_are_refused() -> None:
    with Broker() as broker:
        create(broker.bootstrap, COMPACTED)
        refused: list[Any] = []
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        producer.produce(TOPIC, b"no key", on_delivery=lambda error, _: refused.append(error))
        producer.flush(30)
        assert [error.code() for error in refused] == [confluent_kafka.KafkaError.INVALID_RECORD]


def test_committed_offsets_are_compacted_and_read_again(tmp_path: Path) -> None:
    settings = {
        **CLEANER,
        "offsets.topic.segment.bytes": "1048576",
        "log.cleaner.min.cleanable.ratio": "0.0",
        "log.segment.delete.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
    }
    offsets_log = tmp_path / "data" / "__consumer_offsets-0"
    with BrokerProcess(tmp_path / "data", settings) as broker:
        create(broker.address, {}, partitions=100)
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.address, "group.id": "committing", **QUIET}
        )
        committed = 0
        largest = 0

        def commit() -> bool:
            nonlocal committed, largest
            committed += 1
            parts = [
                confluent_kafka.TopicPartition(TOPIC, number, committed) for number in range(100)
            ]
            consumer.commit(offsets=parts, asynchronous=False)
            largest = max(largest, log_bytes(offsets_log))
            return log_bytes(offsets_log) < largest - 900_000

        until(commit, "committed offsets are not compacted")
        broker.kill()
        broker.start()
        asked = [confluent_kafka.TopicPartition(TOPIC, number) for number in range(100)]
        again = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.address, "group.id": "committing", **QUIET}
        )
        assert {part.offset for part in again.committed(asked, 30)} == {committed}
        consumer.close()
        again.close()


def newest_in(directory: Path) -> dict[str, int]:
    """What a start would find, read from a copy."""
    config = LogConfig(cleanup_policy=frozenset({"compact"}))
    log = open_log(directory, config)
    found: dict[str, int] = {}
    for batch in read_batches(log):
        assert batch.crc_ok()
        for record in decode_records(batch):
            assert record.key is not None
            assert record.value is not None
            found[record.key.decode()] = int(record.value)
    return found


@pytest.mark.timeout(600)
def test_the_broker_is_killed_before_every_step_of_a_pass(tmp_path: Path) -> None:
    """kill −9 by the process itself; at least the acknowledged records must be there."""
    data = tmp_path / "data"
    with BrokerProcess(data, {"log.cleaner.threads": "0"}) as broker:
        create(broker.address, COMPACTED)
    acknowledged: dict[str, int] = {}
    number = kills = 0
    for changes in (0, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 17, 20):
        before = FAIL_POINT.format(changes=changes)
        with BrokerProcess(data, {"log.cleaner.backoff.ms": "20"}, before=before) as broker:
            deadline = time.monotonic() + WAIT_SECONDS
            while broker.alive and time.monotonic() < deadline:
                batch = [(f"key-{n % 7}", str(n)) for n in range(number, number + 200)]
                number += 200
                hasty = {"message.timeout.ms": 2000, "retries": 0}
                if len(produce(broker.address, list(batch), **hasty)) == len(batch):
                    acknowledged.update((key, int(value)) for key, value in batch)
            kills += not broker.alive
        copy = tmp_path / f"copy-{changes}"
        shutil.copytree(data / f"{TOPIC}-0", copy)
        found = newest_in(copy)
        for key, value in acknowledged.items():
            assert value <= found[key] < number
    assert kills == 13
