"""A broker with diskless topics on the Postgres plane, with a real client."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.testing import Broker
from tests.contract.postgres_server import server
from tests.integration.cli_support import invoke
from tests.integration.diskless_support import create_topic, read_all
from tests.integration.processes import BrokerProcess
from tests.waiting import until

pytestmark = pytest.mark.interop
DEADLINE_SECONDS = 60.0
RECORDS = 500
PARTITIONS = 3


@pytest.fixture
def settings() -> dict[str, str]:
    address = asyncio.run(server().create_database())
    return {
        "diskless.control.plane": "postgres",
        "diskless.control.plane.postgres.connection.string": address.reveal(),
        "log.level": "ERROR",
    }


def produce(broker: Broker, values: range) -> dict[int, list[int]]:
    """Partition → the acknowledged offsets, in order."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    offsets: dict[int, list[int]] = {n: [] for n in range(PARTITIONS)}
    errors: list[object] = []

    def delivered(error: object, message: object) -> None:
        if error:
            errors.append(error)
        else:
            offsets[message.partition()].append(message.offset())

    for number in values:
        producer.produce(
            "t", str(number).encode(), partition=number % PARTITIONS, on_delivery=delivered
        )
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert errors == []
    return offsets


def consume(broker: Broker, count: int) -> dict[int, list[tuple[int, int]]]:
    """Partition → (offset, value) of all records."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", n, 0) for n in range(PARTITIONS)])
    found: dict[int, list[tuple[int, int]]] = {n: [] for n in range(PARTITIONS)}
    while sum(map(len, found.values())) < count:
        messages = consumer.consume(count, DEADLINE_SECONDS)
        assert messages, "nothing came"
        for message in messages:
            assert message.error() is None
            found[message.partition()].append((message.offset(), int(message.value())))
    consumer.close()
    return found


def expected(count: int) -> dict[int, list[tuple[int, int]]]:
    values = {n: range(n, count, PARTITIONS) for n in range(PARTITIONS)}
    return {n: list(enumerate(numbers)) for n, numbers in values.items()}


def test_records_and_offsets_outlive_the_broker(settings: dict[str, str], tmp_path: Path) -> None:
    with Broker(settings, directory=tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = NewTopic("t", PARTITIONS, 1, config={"diskless.enable": "true"})
        admin.create_topics([topic])["t"].result()
        acked = produce(broker, range(RECORDS))
        assert consume(broker, RECORDS) == expected(RECORDS)
        assert acked == {n: [o for o, _ in pairs] for n, pairs in expected(RECORDS).items()}
    with Broker(settings, directory=tmp_path) as broker:
        produce(broker, range(RECORDS, 2 * RECORDS))
        found = consume(broker, 2 * RECORDS)
    offsets = {n: [o for o, _ in pairs] for n, pairs in found.items()}
    assert offsets == {n: list(range(len(o))) for n, o in offsets.items()}
    assert sorted(v for pairs in found.values() for _, v in pairs) == list(range(2 * RECORDS))


def test_a_wiped_disk_costs_no_acknowledged_record(
    settings: dict[str, str], tmp_path: Path
) -> None:
    # ENG-32
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    given = {
        **settings,
        "diskless.storage.url": bucket.as_uri(),
        "diskless.metadata.backup.interval.ms": "50",
    }
    with BrokerProcess(disk, given) as node:
        create_topic(node.address, "t", PARTITIONS)
        # The topic is in a backup of the cluster's metadata. One backup may have started before the
        # topic was created, but not the next.
        for number in range(2):
            before = manifests(bucket)
            create_topic(node.address, f"later-{number}")
            until(lambda seen=before: bool(manifests(bucket) - seen))  # type: ignore[misc]
        producer = Producer({"bootstrap.servers": node.address, "enable.idempotence": True})
        for number in range(RECORDS):
            producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(DEADLINE_SECONDS) == 0
        node.kill()
    shutil.rmtree(disk)
    restored = invoke(
        *("restore", "--from", bucket.as_uri(), "--override", f"log.dirs={disk}", "--json")
    )
    assert restored.exit_code == 0, restored.output
    with BrokerProcess(disk, given) as node:
        ends = {n: len(range(n, RECORDS, PARTITIONS)) for n in range(PARTITIONS)}
        found = read_all(node.address, "t", ends)
    assert found == {
        n: [b"%d" % number for number in range(n, RECORDS, PARTITIONS)] for n in range(PARTITIONS)
    }


def manifests(bucket: Path) -> set[Path]:
    return set(bucket.glob("backup/node-*/manifests/*"))
