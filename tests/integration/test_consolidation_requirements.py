"""From the write-ahead log to tiered segments: what is copied when, and what is deleted when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.faulty import Faults, FaultyStore
from skylog.testing import Broker
from skylog.tiered.segments import SegmentState
from tests.integration.broker_client import Client, batch
from tests.integration.cli_support import Cli
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    DISKLESS,
    EARLIEST,
    LATEST_TIERED,
    PER_SEGMENT,
    SEGMENTED,
    WAL_START,
    assembled,
    consolidating_broker,
    covered,
    fill,
    key_of,
    now_ms,
    offset,
    read_all,
    segments,
    tiered_objects,
    tiered_of,
    until_covered,
    until_pruned,
    value,
    wal_objects,
)
from tests.integration.tiered_topics import alter
from tests.waiting import until


@pytest.fixture
def broker() -> Iterator[Broker]:
    with consolidating_broker() as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        yield connected


def faulty(broker: Broker, faults: Faults, back: asyncio.Event) -> FaultyStore:
    """From now on the tiered store has faults, and what stalls does so until it is back; the store
    of the WAL has none."""
    storage = tiered_of(broker).storage
    store = FaultyStore(storage.store, random.Random(7), faults, sleep=lambda _: back.wait())
    storage.store = store
    storage._manifests._store = store
    return store


async def answer(back: asyncio.Event) -> None:
    back.set()


def test_records_are_acknowledged_then_tiered_then_leave_the_log(
    broker: Broker, client: Client
) -> None:
    # ENG-46, ENG-47
    end = 5 * PER_SEGMENT + 2
    back = asyncio.Event()
    store = faulty(broker, Faults(stall=1.0), back)
    client.create("orders", configs=dict(CONSOLIDATING))
    # The tiered store hangs: acknowledgements come as ever, and nothing leaves the WAL.
    fill(client, "orders", 0, end)
    until(lambda: store.injected["stall"] > 0, "something is to be copied")
    written = wal_objects(broker)
    assert written
    assert covered(broker, "orders") == 0
    assert tiered_objects(broker)["rsm-manifest"] == []
    fill(client, "orders", end, end + 1)
    read_all(client, "orders", 0, end + 1)
    assert written <= wal_objects(broker)
    # It answers again.
    store.faults = Faults()
    broker.run(answer(back))
    until_covered(broker, "orders", 5 * PER_SEGMENT)
    found = tiered_objects(broker, "orders")
    assert len(found["log"]) == len(found["indexes"]) == len(found["rsm-manifest"]) == 5
    # Every segment with its indexes, the open one never.
    copied = {int(path.name[:20]) for path in found["log"]}
    assert copied == set(range(0, 5 * PER_SEGMENT, PER_SEGMENT))
    until(lambda: assembled(broker.directory, "orders") == [5 * PER_SEGMENT], "one is open")
    until_pruned(client, "orders", 5 * PER_SEGMENT)
    assert offset(client, "orders", LATEST_TIERED) == 5 * PER_SEGMENT - 1
    assert offset(client, "orders", EARLIEST) == 0
    until(lambda: len(wal_objects(broker)) == 3, "only objects with untiered records are left")
    read_all(client, "orders", 0, end + 1)


def test_a_shared_object_stays_until_all_its_partitions_are_tiered(
    broker: Broker, client: Client
) -> None:
    # ENG-61
    for topic in ("a", "b"):
        client.create(topic, configs=dict(DISKLESS))
    # One request, one object: both partitions are in each of them.
    end = 2 * PER_SEGMENT
    for number in range(end):
        parts = [(topic, 0, batch(value(number), timestamp=now_ms())) for topic in ("a", "b")]
        answers = client.produce_all(parts)
        assert {one.error_code for one in answers.values()} == {0}
    shared = wal_objects(broker)
    assert len(shared) == end
    assert set(live_batches(broker).values()) == {2}
    fill(client, "a", end, end + 1)
    fill(client, "b", end, end + 1)
    alter(client, "a", remote_storage_enable="true")
    until_covered(broker, "a", end)
    until_pruned(client, "a", end)
    # b is not tiered, and needs every one of them.
    live = live_batches(broker)
    assert {live[path] for path in shared} == {1}
    read_all(client, "a", 0, end + 1)
    read_all(client, "b", 0, end + 1)
    alter(client, "b", remote_storage_enable="true")
    until_pruned(client, "b", end)
    until(lambda: not shared & wal_objects(broker), "now nobody needs them")
    read_all(client, "a", 0, end + 1)
    read_all(client, "b", 0, end + 1)


def live_batches(broker: Broker) -> dict[Path, int]:
    """How many batches keep an object from being deleted."""
    root = broker.directory / OBJECTS_DIRECTORY
    rows = Cli(broker).json("diskless", "files", "--bootstrap", broker.bootstrap)
    return {root / row["key"]: row["live_batches"] for row in rows}


@pytest.mark.parametrize("failing", ["all", "finished"])
def test_without_metadata_no_object_of_the_log_is_deleted(
    broker: Broker, client: Client, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ENG-62
    topic = tiered_of(broker).metadata_topic
    append, refused = topic.append, []
    update = 1  # RemoteLogSegmentMetadataUpdateRecord, the second byte of a value

    async def fails(partition: int, records: list[bytes]) -> int:
        if failing == "all" or any(record[1] == update for record in records):
            refused.append(partition)
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return await append(partition, records)

    monkeypatch.setattr(type(topic), "append", staticmethod(fails))
    client.create("orders", configs=dict(CONSOLIDATING))
    end = 3 * PER_SEGMENT
    fill(client, "orders", 0, end + 1)
    written = wal_objects(broker)
    until(lambda: len(refused) > 3, "it was tried again and again")
    if failing == "finished":
        # The segment is in the store as a whole, but no metadata confirms it.
        until(lambda: tiered_objects(broker)["rsm-manifest"], "a segment was copied")
    prunes = tiered_of(broker).counts.prune
    runs = prunes.runs
    until(lambda: prunes.runs > runs + 2, "there was time to prune")
    assert segments(broker, "orders") == []
    assert offset(client, "orders", WAL_START) == 0
    live = live_batches(broker)
    assert {live[path] for path in written} == {1}
    read_all(client, "orders", 0, end + 1)
    monkeypatch.undo()
    until_pruned(client, "orders", end)
    until(lambda: len(wal_objects(broker)) == 1)
    read_all(client, "orders", 0, end + 1)


def test_one_consumer_reads_every_kind_of_topic(broker: Broker, client: Client) -> None:
    # ENG-02
    kinds = {
        "classic": SEGMENTED,
        "classic-tiered": {
            **SEGMENTED,
            "remote.storage.enable": "true",
            "local.retention.bytes": "1",
            "file.delete.delay.ms": "0",
        },
        "diskless": DISKLESS,
        "consolidating": CONSOLIDATING,
    }
    for name, configs in kinds.items():
        client.create(name, configs=dict(configs))
    count = 4 * PER_SEGMENT + 1
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number in range(count):
        for name in kinds:
            producer.produce(name, value(number), partition=0)
        assert producer.flush(60) == 0
    for name in ("classic-tiered", "consolidating"):
        until(lambda name=name: offset(client, name, WAL_START) >= PER_SEGMENT, f"{name} moves")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "all",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(list(kinds))
    found: dict[str, list[bytes]] = {name: [] for name in kinds}

    def complete() -> bool:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            found[message.topic()].append(message.value())
        return all(len(known) >= count for known in found.values())

    until(complete, "all is read")
    consumer.close()
    assert found == {name: [value(number) for number in range(count)] for name in kinds}


def test_classic_and_diskless_topics_share_metadata_store_and_reader(
    broker: Broker, client: Client
) -> None:
    # ENG-49
    classic = {**SEGMENTED, "remote.storage.enable": "true", "local.retention.bytes": "1"}
    client.create("classic", configs={**classic, "file.delete.delay.ms": "0"})
    client.create("diskless", configs=dict(CONSOLIDATING))
    end = 3 * PER_SEGMENT
    for topic in ("classic", "diskless"):
        fill(client, topic, 0, end + 1)
        until_covered(broker, topic, end)
        until_pruned(client, topic, end)
    tiered = tiered_of(broker)
    for topic in ("classic", "diskless"):
        # The same records in the same topic, the same objects in the same store, in the same form.
        remote = tiered.logs.get(key_of(broker, topic))
        assert remote is not None
        assert {one.state for one in remote.all()} == {SegmentState.COPY_FINISHED}
        found = tiered_objects(broker, topic)
        assert len(found["log"]) == len(found["indexes"]) == len(found["rsm-manifest"]) == 3
        before = tiered.counts.of(topic).fetch_requests
        read_all(client, topic, 0, end + 1)
        assert tiered.counts.of(topic).fetch_requests > before
    one, other = (segments(broker, topic) for topic in ("classic", "diskless"))
    for ours, theirs in zip(one, other, strict=True):
        assert (ours.start_offset, ours.end_offset) == (theirs.start_offset, theirs.end_offset)
        assert ours.size == theirs.size
        assert ours.txn_index_empty == theirs.txn_index_empty
