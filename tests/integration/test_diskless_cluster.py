"""Diskless topics over three brokers, whose coordinators lead on all of them."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from skylog.diskless.coordinator.state import digest
from skylog.kernel.errors import ErrorCode
from skylog.kernel.rng import system_random
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.objects.keys import ObjectKey
from skylog.objects.metered import MeteredStore
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.wire.messages import alter_partition_reassignments_request as reassign
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.describe_diskless_coordinators_request import (
    DescribeDisklessCoordinatorsRequest,
)
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.list_diskless_files_request import ListDisklessFilesRequest
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.integration.broker_client import Client, batch, values
from tests.integration.cluster_support import alive, ask
from tests.integration.diskless_support import Load, create_topic, end_offsets, read_all
from tests.waiting import until

COORDINATORS = 4
SETTINGS: Mapping[str, str] = {
    "diskless.metadata.topic.num.partitions": str(COORDINATORS),
    "diskless.metadata.topic.min.isr": "2",
    "log.level": "ERROR",
}
# The kind of coordinator that FindCoordinator is asked for.
DISKLESS = 100


@contextmanager
def cluster_of(brokers: int = 3, **settings: str) -> Iterator[Cluster]:
    """Every broker knows every other; dots of settings are underscores."""
    chosen = {**SETTINGS, **{key.replace("_", "."): value for key, value in settings.items()}}
    with Cluster(brokers=brokers, settings=chosen) as cluster:
        for broker in cluster.brokers:
            until(lambda broker=broker: len(alive(broker)) == brokers)
        yield cluster


@pytest.fixture(scope="module")
def calm() -> Iterator[Cluster]:
    """A cluster whose brokers do not fail."""
    with cluster_of(broker_session_timeout_ms="60000") as cluster:
        yield cluster


def create(cluster: Cluster, name: str, partitions: int) -> None:
    """A diskless topic that every broker knows."""
    create_topic(cluster.bootstrap, name, partitions)
    for broker in cluster.brokers:
        until(lambda node=broker: node.node.has_topic(name))


def coordinators(node: ClusterNode, *, only_here: bool = False) -> Any:
    return ask(node, DescribeDisklessCoordinatorsRequest(only_here=only_here), 0)


def described(node: ClusterNode) -> dict[int, int]:
    """The broker of each coordinator, as any broker shows it; empty if one is missing."""
    answer = coordinators(node)
    if not answer.has_all_coordinators:
        return {}
    return {one.partition_index: one.leader_id for one in answer.coordinators}


def active(cluster: Cluster) -> dict[int, int]:
    """The broker that leads each coordinator and serves it, as the broker itself reports."""
    return {
        one.partition_index: broker.node_id
        for broker in cluster.brokers
        if broker.running
        for one in coordinators(broker, only_here=True).coordinators
        if one.state == "active"
    }


def all_active(cluster: Cluster) -> dict[int, int]:
    def found() -> dict[int, int] | None:
        led = active(cluster)
        return led if len(led) == COORDINATORS else None

    return until(found)


def test_every_broker_serves_every_partition(calm: Cluster) -> None:
    """Produce, Fetch, ListOffsets and DeleteRecords, at any broker for any partition."""
    # DC-54, ENG-34, ENG-30 partly, ENG-31 partly
    create(calm, "anywhere", 6)
    assert set(all_active(calm).values()) == {1, 2, 3}
    expected: dict[int, list[bytes]] = {index: [] for index in range(6)}
    for turn, broker in enumerate(calm.brokers):
        with Client(broker.bootstrap) as client:
            for index in range(6):
                value = b"%d-%d" % (turn, index)
                answer = client.produce("anywhere", value, index=index)
                assert (answer.error_code, answer.base_offset) == (0, turn)
                expected[index].append(value)
    for broker in calm.brokers:
        with Client(broker.bootstrap) as client:
            for index in range(6):
                found = client.fetch("anywhere", index=index)
                assert (found.error_code, found.high_watermark) == (0, 3)
                assert values(found.records) == expected[index]
    for index, broker in enumerate(calm.brokers):
        partition = DeleteRecordsPartition(index, 2)
        request = DeleteRecordsRequest([DeleteRecordsTopic("anywhere", [partition])], 30_000)
        deleted = ask(broker, request).topics[0].partitions[0]
        assert (deleted.error_code, deleted.low_watermark) == (0, 2)
        for other in calm.brokers:
            asked = ListOffsetsTopic("anywhere", [ListOffsetsPartition(index, -1, -2)])
            listed = ask(other, ListOffsetsRequest(-1, 0, [asked])).topics[0].partitions[0]
            assert (listed.error_code, listed.offset) == (0, 2)


def test_brokers_upload_independently(calm: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """No upload ends before all three brokers have begun one: a lock between them would
    deadlock."""
    # ENG-13
    create(calm, "uploaded", 3)
    all_active(calm)
    put = MeteredStore.put
    uploading: set[int] = set()
    keys: list[str] = []
    end = time.monotonic() + 60

    async def together(self: MeteredStore, key: ObjectKey, data: Any, **more: Any) -> None:
        if key.text.startswith("wal/"):
            uploading.add(id(self))
            keys.append(key.text)
            while len(uploading) < len(calm.brokers) and time.monotonic() < end:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # the others run on loops of other threads
        await put(self, key, data, **more)

    def produce(place: int) -> int:
        with Client(calm.brokers[place].bootstrap) as client:
            return int(client.produce("uploaded", b"v", index=place).error_code)

    monkeypatch.setattr(MeteredStore, "put", together)
    with ThreadPoolExecutor(len(calm.brokers)) as threads:
        assert list(threads.map(produce, range(len(calm.brokers)))) == [0, 0, 0]
    assert len(uploading) == len(calm.brokers)
    assert len(set(keys)) == len(keys) >= len(calm.brokers)


def test_a_commit_through_one_broker_wakes_a_fetch_at_another(calm: Cluster) -> None:
    """A waiting fetch ends with the commit, long before its timeout."""
    create(calm, "waiting", 4)
    all_active(calm)
    for index in range(4):
        for broker in calm.brokers:
            consumer = Consumer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "group.id": "none",
                    "fetch.wait.max.ms": 60_000,
                    "log_level": 0,
                }
            )
            with Client(calm.brokers[(index + 1) % 3].bootstrap) as client:
                end = client.produce("waiting", b"first", index=index).base_offset
                consumer.assign([TopicPartition("waiting", index, end)])
                assert consumer.poll(60).value() == b"first"
                began = time.monotonic()
                client.produce("waiting", b"next", index=index)
                assert consumer.poll(60).value() == b"next"
                # Without a wake-up it would have waited for the whole of fetch.wait.max.ms.
                assert time.monotonic() - began < 45
            consumer.close()


def test_coordinators_are_found_and_described_wherever_they_lead(calm: Cluster) -> None:
    # DC-24 partly
    create(calm, "found", 2)
    led = all_active(calm)
    for broker in calm.brokers:
        until(lambda node=broker: described(node) == led)
        for number, node_id in led.items():
            request = FindCoordinatorRequest(key_type=DISKLESS, coordinator_keys=[str(number)])
            assert ask(broker, request, 6).coordinators[0].node_id == node_id
    with Client(calm.brokers[0].bootstrap) as client:
        assert client.produce("found", b"x").error_code == 0
    lists = [
        [(file.object_key, file.live_batches) for file in answer.files]
        for answer in (ask(broker, ListDisklessFilesRequest("", 1000)) for broker in calm.brokers)
    ]
    assert lists[0]
    assert lists[1:] == [lists[0], lists[0]]


def test_followers_have_the_leaders_state(calm: Cluster) -> None:
    # DC-28 partly
    create(calm, "followed", 4)
    led = all_active(calm)
    with Client(calm.bootstrap.split(",")[0]) as client:
        for index in range(4):
            assert client.produce("followed", b"x", index=index).error_code == 0

    for number in led:
        until(lambda number=number: followed(calm, number, led[number]))


def followed(cluster: Cluster, number: int, leader: int) -> bool:
    """Whether all brokers have the same state of a coordinator."""
    states = []
    for broker in cluster.brokers:
        registry = broker.node._services.diskless.coordination.local
        if broker.node_id == leader:
            machine = registry.get(number).machine
        else:
            standby = registry.standby(number)
            machine = None if standby is None else standby._machine
        if machine is None:
            return False
        with machine.state.snapshot_view() as view:
            states.append(digest(view))
    return len(set(states)) == 1


def test_a_follower_that_lost_its_disk_fetches_snapshots() -> None:
    """The coordinators' logs are pruned meanwhile, so they cannot be replayed."""
    # DC-41 partly
    opening = cluster_of(
        diskless_metadata_topic_num_partitions="1",
        diskless_metadata_snapshot_bytes="3000",
        broker_session_timeout_ms="60000",
    )
    with opening as cluster:
        create(cluster, "t", 2)
        leader = until(lambda: active(cluster).get(0))
        lost = next(broker for broker in cluster.brokers if broker.node_id != leader)
        lost.stop()
        for path in lost.directory.glob(f"{DISKLESS_METADATA}-*"):
            shutil.rmtree(path)
        shutil.rmtree(lost.directory / "diskless-coordinators")
        log = cluster.broker(leader).node._services.logs.get(DISKLESS_METADATA, 0)
        assert log is not None
        with Client(cluster.broker(leader).bootstrap) as client:
            until(lambda: client.produce("t", b"x") and log.log_start_offset > 0)
        lost.start()
        until(lambda: followed(cluster, 0, leader))
        registry = lost.node._services.diskless.coordination.local
        assert registry.snapshots(0).ids()


def test_without_a_shared_store_there_are_no_diskless_topics() -> None:
    with cluster_of(2, diskless_storage_url="") as cluster:
        topic = CreatableTopic(
            "alone", 1, -1, configs=[CreatableTopicConfig("diskless.enable", "true")]
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        answer = ask(cluster.brokers[0], request).topics[0]
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert "diskless.storage.url" in answer.error_message
        assert not cluster.brokers[0].node.has_topic("alone")


def test_leaders_of_coordinators_fail_one_after_the_other() -> None:
    """Nothing acknowledged is lost or duplicated, and consumers go on."""
    # DC-24, DC-47 partly, DC-48 partly
    with cluster_of() as cluster:
        create(cluster, "t", 6)
        all_active(cluster)
        with Load(cluster.bootstrap, "t", 6, per_second=500) as load:
            load.wait_for(300)
            for node_id in (1, 2, 3):
                cluster.broker(node_id).kill()
                until(
                    lambda gone=node_id: gone not in (found := active(cluster)).values() and found
                )
                load.wait_for(300)
                cluster.broker(node_id).start()
                all_active(cluster)
        history = load.history
        ends = end_offsets(cluster.bootstrap, "t", 6)
        history.check(read_all(cluster.bootstrap, "t", ends))


def test_records_are_read_after_a_restart_of_all_other_brokers() -> None:
    # ENG-54
    with cluster_of() as cluster:
        create(cluster, "t", 3)
        all_active(cluster)
        with Client(cluster.brokers[0].bootstrap) as client:
            for index in range(3):
                assert client.produce("t", b"kept", index=index).error_code == 0
        for broker in cluster.brokers[:2]:
            broker.stop()
            broker.start()
        all_active(cluster)
        assert read_all(cluster.brokers[2].bootstrap, "t", {0: 1, 1: 1, 2: 1}) == {
            index: [b"kept"] for index in range(3)
        }


def test_a_subset_of_brokers_hosts_the_coordinators() -> None:
    # DC-25
    with cluster_of(broker_session_timeout_ms="60000") as cluster:
        create(cluster, "dedicated", 4)
        all_active(cluster)
        moved = [
            reassign.ReassignablePartition(number, [1 + number % 2, 2 - number % 2])
            for number in range(COORDINATORS)
        ]
        request = reassign.AlterPartitionReassignmentsRequest(
            timeout_ms=30_000, topics=[reassign.ReassignableTopic(DISKLESS_METADATA, moved)]
        )
        answer = ask(cluster.brokers[0], request)
        assert answer.error_code == 0
        until(lambda: set(all_active(cluster).values()) <= {1, 2})
        with Client(cluster.brokers[2].bootstrap) as client:
            for index in range(4):
                until(
                    lambda index=index: (
                        client.produce("dedicated", b"x", index=index).error_code == 0
                    )
                )


def _orphan(objects: Path) -> Path:
    """An object that was uploaded and never committed."""
    key = ObjectKey.new("wal", int(time.time() * 1000), system_random())
    path = objects.parent / key.text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"never committed")
    return path


def test_objects_are_deleted_by_their_last_owner(tmp_path: Path) -> None:
    """Files of coordinators on several brokers, handed from one to the next and then deleted."""
    # DC-44 partly, DC-52 partly
    opening = cluster_of(
        diskless_storage_url=(tmp_path / "objects").as_uri(),
        diskless_commit_age_max_ms="3000",
        diskless_coordinator_orphan_scan_grace_period_ms="6001",
        diskless_coordinator_orphan_scan_interval_ms="200",
        diskless_file_cleaner_interval_ms="200",
        broker_session_timeout_ms="60000",
    )
    with opening as cluster:
        for name in ("gone", "kept"):
            create(cluster, name, 4)
        all_active(cluster)
        with Client(cluster.brokers[0].bootstrap) as client:
            # One file with batches of every coordinator, and one that stays.
            parts = [("gone", index, batch(b"x")) for index in range(4)]
            assert not any(one.error_code for one in client.produce_all(parts).values())
            assert client.produce("kept", b"y").error_code == 0
        objects = tmp_path / "objects" / "wal"
        assert len(list(objects.glob("*/*"))) == 2
        orphan = _orphan(objects)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        for future in admin.delete_topics(["gone"]).values():
            future.result()
        until(lambda: len(list(objects.glob("*/*"))) == 1)
        assert not orphan.exists()
        assert read_all(cluster.bootstrap, "kept", {0: 1}) == {0: [b"y"]}
