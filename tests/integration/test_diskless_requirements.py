"""Requirements on diskless topics that one node can show."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, ResourceType

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY
from skylog.kernel.errors import ErrorCode
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.objects.keys import ObjectKey
from skylog.objects.metered import MeteredStore
from skylog.testing import Broker
from skylog.wire.apis import ApiKey
from skylog.wire.batch import split_batches
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.records import decode_records
from tests.integration.auth_world import ADMIN, ALICE, World
from tests.integration.auth_world import SETTINGS as AUTHORIZED
from tests.integration.diskless_support import SECONDS_MAX, create_topic, read_all
from tests.integration.diskless_uploader import SETTINGS as BROKERS
from tests.integration.diskless_uploader import Upload, new_topic
from tests.integration.processes import BrokerProcess
from tests.integration.wire_client import Wire

SETTINGS = {"diskless.metadata.topic.num.partitions": "3", "log.level": "ERROR"}
FAST_CLEANING = {
    "diskless.commit.age.max.ms": "3000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "6001",
}


def produce(bootstrap: str, topic: str, values: Sequence[bytes], **more: object) -> None:
    """Each in a separate request."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **more})
    for value in values:
        producer.produce(topic, value, partition=0)
        assert producer.flush(SECONDS_MAX) == 0


def requests(broker: Broker, operation: str) -> int:
    count: int = broker.node._services.diskless.store_stats.operations[operation].requests  # type: ignore[index]
    return count


def wal_keys(broker: Broker) -> set[str]:
    root = broker.directory / OBJECTS_DIRECTORY
    return {path.relative_to(root).as_posix() for path in (root / "wal").glob("*/*")}


# Classic topics beside them


class Forbidden:
    """Replaces the engine, which classic topics must not use."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"diskless.{name} was asked for")


def test_classic_topics_neither_reach_the_engine_nor_the_store() -> None:
    # ENG-07
    with Broker(SETTINGS) as broker:
        create_topic(broker.bootstrap, "diskless")
        produce(broker.bootstrap, "diskless", [b"d"])
        assert requests(broker, "put") == 1
        services = broker.node._services
        engine, services.diskless = services.diskless, Forbidden()  # type: ignore[assignment]
        try:
            produce(broker.bootstrap, "classic", [b"a", b"b"])
            assert read_all(broker.bootstrap, "classic", {0: 2}) == {0: [b"a", b"b"]}
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            for future in admin.delete_records([TopicPartition("classic", 0, 1)]).values():
                assert future.result().low_watermark == 1
        finally:
            services.diskless = engine
        assert requests(broker, "put") == 1
        assert (broker.directory / "classic-0" / ("0" * 20 + ".log")).stat().st_size > 0
        assert read_all(broker.bootstrap, "diskless", {0: 1}) == {0: [b"d"]}


def test_a_node_has_only_client_connections(tmp_path: Path) -> None:
    # ENG-06
    with BrokerProcess(tmp_path / "node", SETTINGS) as node:
        create_topic(node.address, "alone")
        produce(node.address, "alone", [b"a"])
        assert read_all(node.address, "alone", {0: 1}) == {0: [b"a"]}
        listening, connected = sockets(node.process.pid)
        assert connected <= listening, "connections that did not come in through a listener"
        assert children(node.process.pid) == []


def sockets(pid: int) -> tuple[set[int], set[int]]:
    """Local ports of the sockets of a process that listen, and of those that are connected."""
    own = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            own.add(str(Path(entry.path).readlink()))
        except FileNotFoundError:  # closed in the meantime
            continue
    listening, connected = set(), set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if f"socket:[{fields[9]}]" in own:
                port = int(fields[1].rpartition(":")[2], 16)
                (listening if fields[3] == "0A" else connected).add(port)
    return listening, connected


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


# Reading


def test_a_fetch_without_permission_causes_no_lookup() -> None:
    # ENG-35
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    given = {**SETTINGS, **AUTHORIZED, "listeners": listeners}
    with Broker({**given, "diskless.fetch.cache.max.bytes": "0"}) as broker:
        addresses = (broker.address(n) for n in ("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER"))
        world = World(*addresses)
        topic_id = new_topic(world.admin, "secret", 2)
        upload = Upload().add(topic_id, [b"a"]).add(topic_id, [b"b"], 1)
        upload.store(broker)
        answer = world.admin.ask(upload.request(owner_ids=[0, 1, 2]))
        assert {batch.error_code for batch in answer.batches} == {ErrorCode.NONE}
        engine = broker.node._services.diskless

        def looked_up() -> tuple[int, int]:
            return engine.reader.find_stage.runs, requests(broker, "get")

        before = looked_up()
        topics = [FetchTopic(topic_id=topic_id, partitions=[partition(0), partition(1)])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
        with world.connect(ALICE) as alice:
            (denied,) = alice.ask(request).responses
        assert {part.error_code for part in denied.partitions} == {
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }
        assert looked_up() == before
        with world.connect(ADMIN) as admin:
            (allowed,) = admin.ask(request).responses
        assert {part.error_code for part in allowed.partitions} == {ErrorCode.NONE}
        assert looked_up() > before
        world.close()


def partition(index: int) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)


# Objects


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the key of every object that is written."""
    seen: list[str] = []
    put = MeteredStore.put

    async def noted(self: MeteredStore, key: ObjectKey, data: Any, **more: Any) -> None:
        seen.append(key.text)
        await put(self, key, data, **more)

    monkeypatch.setattr(MeteredStore, "put", noted)
    return seen


def test_no_object_is_written_twice(puts: list[str], tmp_path: Path) -> None:
    # ENG-63
    for life in range(2):
        with Broker({**SETTINGS, **FAST_CLEANING}, directory=tmp_path) as broker:
            if life == 0:
                create_topic(broker.bootstrap, "kept")
                create_topic(broker.bootstrap, "short", **{"retention.bytes": "1"})
            for _ in range(5):
                produce(broker.bootstrap, "kept", [b"k"])
                produce(broker.bootstrap, "short", [b"s"])
            for paced in broker.node.maintenance.passes:
                broker.run(paced._work.run_once())
            assert len(read_all(broker.bootstrap, "kept", {0: 5 * (life + 1)})[0]) == 5 * (life + 1)
    written = [key for key in puts if key.startswith("wal/")]
    assert len(written) == len(set(written)) == 20


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Operations of the store that hang."""
    operations: list[str] = []
    for name in ("put", "get", "head", "delete_many"):
        monkeypatch.setattr(MeteredStore, name, hanging(name, operations))
    yield operations
    operations.clear()


def hanging(name: str, operations: list[str]) -> Any:
    work = getattr(MeteredStore, name)

    async def call(self: MeteredStore, *args: Any, **more: Any) -> Any:
        while name in operations:  # noqa: ASYNC110 - the test lets it go on from another thread
            await asyncio.sleep(0.01)
        return await work(self, *args, **more)

    return call


def test_slow_deletions_delay_no_request(stuck: list[str]) -> None:
    # ENG-64
    with Broker({**SETTINGS, **FAST_CLEANING}) as broker:
        create_topic(broker.bootstrap, "short", **{"retention.ms": "1"})
        create_topic(broker.bootstrap, "kept")
        produce(broker.bootstrap, "short", [b"s", b"s"])
        gone = wal_keys(broker)
        cleaner = broker.node.maintenance.cleaner
        broker.run(broker.node.maintenance.retention.run_once())
        stuck.append("delete_many")
        deadline = time.monotonic() + SECONDS_MAX
        pending = start_on_loop(broker, until_deleted(cleaner, deadline))
        produce(broker.bootstrap, "kept", [b"a", b"b"])
        assert read_all(broker.bootstrap, "kept", {0: 2}) == {0: [b"a", b"b"]}
        assert gone <= wal_keys(broker)
        stuck.clear()
        pending.result(SECONDS_MAX)
        assert not gone & wal_keys(broker)


async def until_deleted(cleaner: Any, deadline: float) -> None:
    """Run passes until one finds that the grace period is over."""
    while not cleaner.stats.files_deleted:
        assert time.monotonic() < deadline
        await cleaner.run_once()
        await asyncio.sleep(0.05)


def start_on_loop(broker: Broker, work: Any) -> Any:
    loop = broker._loop
    assert loop is not None
    return asyncio.run_coroutine_threadsafe(work, loop)


def test_a_store_that_hangs_delays_no_commit(stuck: list[str]) -> None:
    # DC-45
    with (
        Broker({**BROKERS, **FAST_CLEANING, "diskless.file.cleaner.interval.ms": "50"}) as broker,
        Wire(broker.address("BROKERS")) as wire,
    ):
        topic_id = new_topic(wire, "short", **{"retention.bytes": "1"})
        kept = new_topic(wire, "kept")
        for _ in range(3):
            upload = Upload().add(topic_id, [b"v"])
            upload.store(broker)
            wire.ask(upload.request())
        broker.run(broker.node.maintenance.retention.run_once())
        stuck.extend(("put", "get", "head", "delete_many"))
        cleaner = broker.node.maintenance.cleaner
        pending = start_on_loop(broker, until_deleted(cleaner, time.monotonic() + SECONDS_MAX))
        for offset in range(20):
            (result,) = wire.ask(Upload().add(kept, [b"v"]).request()).batches
            assert (result.error_code, result.assigned_base_offset) == (ErrorCode.NONE, offset)
        assert not pending.done()
        stuck.clear()
        pending.result(SECONDS_MAX)


# Coordinators


def coordinators_of(broker: Broker, topic: str) -> dict[int, int]:
    found = broker.node._image.topic(topic)
    assert found is not None
    return {index: state.diskless_coordinator for index, state in found.partitions.items()}


def test_the_metadata_topic_is_internal_and_divided() -> None:
    # DC-20
    with Broker(SETTINGS) as broker, Wire(broker.bootstrap) as wire:
        create_topic(broker.bootstrap, "one")
        request = MetadataRequest(topics=[MetadataRequestTopic(name=DISKLESS_METADATA)])
        (topic,) = wire.ask(request).topics
        assert (topic.error_code, topic.is_internal) == (ErrorCode.NONE, True)
        assert [part.partition_index for part in sorted_partitions(topic)] == [0, 1, 2]
        told = broker.node._services.diskless.coordination.local.led()
        assert told == [0, 1, 2]


def sorted_partitions(topic: Any) -> list[Any]:
    return sorted(topic.partitions, key=lambda part: part.partition_index)


def test_partitions_keep_their_coordinators(tmp_path: Path) -> None:
    # DC-22, DC-23
    with Broker(SETTINGS, directory=tmp_path) as broker:
        create_topic(broker.bootstrap, "old", 6)
        before = coordinators_of(broker, "old")
        assert set(before.values()) == {0, 1, 2}
        produce(broker.bootstrap, "old", [b"a"])
    with Broker(SETTINGS, directory=tmp_path) as broker:
        assert coordinators_of(broker, "old") == before
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        grown = admin.create_partitions([NewPartitions(DISKLESS_METADATA, 5)])
        for future in grown.values():
            future.result()
        create_topic(broker.bootstrap, "new", 10)
        assert coordinators_of(broker, "old") == before
        assert set(coordinators_of(broker, "new").values()) == {0, 1, 2, 3, 4}
        produce(broker.bootstrap, "old", [b"b"])
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for index in range(10):
            producer.produce("new", b"%d" % index, partition=index)
        assert producer.flush(SECONDS_MAX) == 0
    with Broker(SETTINGS, directory=tmp_path) as broker:
        assert coordinators_of(broker, "old") == before
        assert read_all(broker.bootstrap, "old", {0: 2}) == {0: [b"a", b"b"]}
        ends = dict.fromkeys(range(10), 1)
        assert read_all(broker.bootstrap, "new", ends) == {n: [b"%d" % n] for n in range(10)}


def test_the_cluster_metadata_knows_no_batch(tmp_path: Path) -> None:
    # DC-62
    with Broker(SETTINGS, directory=tmp_path) as broker:
        create_topic(broker.bootstrap, "many")
        produce(broker.bootstrap, "many", [b"v"] * 20)
        keys = wal_keys(broker)
    assert len(keys) == 20

    def mentioned(directory: str) -> set[str]:
        found = [
            record.value or b""
            for path in tmp_path.glob(f"{directory}/*.log")
            for batch in split_batches(path.read_bytes())
            for record in decode_records(batch)
        ]
        assert found
        return {key for key in keys if any(key.encode() in value for value in found)}

    assert mentioned("__cluster_metadata-0") == set()
    assert mentioned(f"{DISKLESS_METADATA}-*") == keys


def test_settings_of_the_coordinators_are_described() -> None:
    # DC-60
    names = {
        "diskless.metadata.topic.num.partitions": "3",
        "diskless.coordinator.orphan.scan.interval.ms": "86400000",
        "diskless.coordinator.orphan.scan.grace.period.ms": "3600000",
    }
    with Broker(SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
        found = future.result()
    assert {name: found[name].value for name in names} == names


def test_no_operation_is_about_transactions_or_tiers() -> None:
    # DC-05
    names = {key.name for key in ApiKey if key.name.startswith("DISKLESS_")}
    assert names == {
        f"DISKLESS_{name}"
        for name in (
            *("CREATE_PARTITIONS", "DELETE_TOPICS", "COMMIT_FILE", "DELETE_RECORDS"),
            *("LIST_OFFSETS", "FIND_BATCHES", "DESCRIBE_FILES"),
            # Our own APIs between brokers, for which the KIP has no operation.
            *("RECEIVE_FILE", "PIN_FILES", "READ_RANGES", "FETCH_SNAPSHOT"),
        )
    }
