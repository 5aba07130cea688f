"""A broker in each of three zones: the traffic between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from skylog.client.connection import ClientConnection
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.wire.batch import split_batches
from skylog.wire.codec import encode_parts
from skylog.wire.records import decode_records
from tests.integration.cluster_support import created
from tests.integration.diskless_support import SECONDS_MAX, read_all
from tests.integration.racks_cluster import CALM, create, metrics_of, racks_cluster
from tests.waiting import until

ZONES = ("a", "b", "c")
MARK = b"the record itself"
INTERVAL_MS = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with racks_cluster(3, settings=CALM) as running:
        yield running


@pytest.fixture
def crossing(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Requests and responses with records between nodes."""
    found: list[bytes] = []
    write, receive = ClientConnection._write, ClientConnection._receive

    async def written(self: Any, key: Any, version: int, message: Any, answer: Any) -> None:
        data = b"".join(encode_parts(message, version))
        found.extend([data] if MARK in data else [])
        await write(self, key, version, message, answer)

    def received(self: Any, frame: memoryview) -> None:
        found.extend([bytes(frame)] if MARK in bytes(frame) else [])
        receive(self, frame)

    monkeypatch.setattr(ClientConnection, "_write", written)
    monkeypatch.setattr(ClientConnection, "_receive", received)
    return found


def client(cluster: Cluster, zone: str) -> dict[str, Any]:
    """The settings of a client in a zone, with all brokers as bootstrap servers."""
    return {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": f"app,diskless_az={zone}",
        "log_level": 0,
    }


def produce(cluster: Cluster, zone: str, topic: str, count: int = 50) -> list[bytes]:
    """Produce each value in a separate request; returns the values."""
    sent = [b"%s %s %d" % (MARK, zone.encode(), number) for number in range(count)]
    producer = Producer({**client(cluster, zone), "batch.num.messages": 1})
    for value in sent:
        producer.produce(topic, value, partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    return sent


def counted(cluster: Cluster, what: str, topic: str) -> dict[str, float]:
    """A total of the topic at the broker of each zone."""
    name = f'skylog_topic_{what}_total{{topic="{topic}"}}'
    pairs = zip(ZONES, cluster.brokers, strict=True)
    return {zone: metrics_of(broker).get(name, 0) for zone, broker in pairs}


def objects(cluster: Cluster) -> set[Path]:
    return set((cluster.directory / "objects" / "wal").glob("*/*"))


def test_records_of_classic_topics_go_to_followers_and_to_no_object(
    cluster: Cluster, crossing: list[bytes]
) -> None:
    # ENG-03
    created(cluster.brokers[0], "classic", 1, 3)
    before = objects(cluster)
    sent = produce(cluster, "a", "classic")
    assert read_all(cluster.bootstrap, "classic", {0: len(sent)}) == {0: sent}
    size = max(counted(cluster, "bytes_in", "classic").values())

    def followed() -> bool:
        got = sorted(counted(cluster, "replication_bytes_in", "classic").values())
        return got == [0, size, size]

    until(followed, "both followers have fetched everything")
    logs = [broker.directory / "classic-0" / f"{0:020}.log" for broker in cluster.brokers]
    assert len({log.read_bytes() for log in logs}) == 1
    assert crossing
    assert objects(cluster) == before


def test_records_of_diskless_topics_go_to_objects_and_to_no_follower(
    cluster: Cluster, crossing: list[bytes]
) -> None:
    # ENG-04
    assert create(cluster, "diskless").error_code == 0
    before = objects(cluster)
    sent = produce(cluster, "a", "diskless")
    assert read_all(cluster.bootstrap, "diskless", {0: len(sent)}) == {0: sent}
    assert objects(cluster) > before
    for what in ("replication_bytes_in", "replication_bytes_out"):
        assert set(counted(cluster, what, "diskless").values()) == {0}
    assert not list(cluster.directory.glob("node-*/diskless-0*"))
    assert crossing == []


def test_clients_talk_to_the_broker_in_their_zone(cluster: Cluster, crossing: list[bytes]) -> None:
    # ENG-29, ENG-30
    assert create(cluster, "near").error_code == 0
    expected: list[bytes] = []
    for zone in ZONES:
        wrote, read = (counted(cluster, what, "near") for what in ("produce_requests", "bytes_out"))
        expected += produce(cluster, zone, "near")
        found = read_all(cluster.bootstrap, "near", {0: len(expected)}, **client(cluster, zone))
        assert found == {0: expected}
        wrote_now = counted(cluster, "produce_requests", "near")
        read_now = counted(cluster, "bytes_out", "near")
        assert [each for each in ZONES if wrote_now[each] > wrote[each]] == [zone]
        assert [each for each in ZONES if read_now[each] > read[each]] == [zone]
    assert crossing == [], "records went from one broker to another"


def test_all_zones_see_one_order(cluster: Cluster) -> None:
    # ENG-31
    assert create(cluster, "ordered").error_code == 0
    count = 200
    with ThreadPoolExecutor(2 * len(ZONES)) as threads:
        producing = [
            threads.submit(produce, cluster, zone, "ordered", count=count) for zone in ZONES
        ]
        consuming = [
            threads.submit(
                read_all,
                cluster.bootstrap,
                "ordered",
                {0: count * len(ZONES)},
                **client(cluster, zone),
            )
            for zone in ZONES
        ]
        sent = [each.result() for each in producing]
        # Offsets are dense from 0 on: the index in the list is the offset.
        first, *others = [each.result()[0] for each in consuming]
    assert all(other == first for other in others)
    for own in sent:
        assert [value for value in first if value in set(own)] == own


def engine(broker: ClusterNode) -> Any:
    return broker.node._services.diskless  # type: ignore[union-attr]


def gets(broker: ClusterNode) -> int:
    return int(engine(broker).store_stats.operations["get"].requests)


def copied(broker: ClusterNode, end: int) -> list[bytes | None] | None:
    """The values in the broker's local segments, once they reach up to ``end``."""
    for one in list(engine(broker).local.partitions):
        if one.following and one.end == end:
            logs = sorted(Path(one.place.directory).glob("*.log"))
            batches = [batch for log in logs for batch in split_batches(log.read_bytes())]
            return [record.value for batch in batches for record in decode_records(batch)]
    return None


def test_every_replica_reads_objects_and_fills_its_own_segments() -> None:
    # ENG-05
    settings = {
        **CALM,
        "diskless.local.segments.enable": "true",
        "diskless.fetch.cache.max.bytes": "0",  # every read of an object goes to the store
    }
    with racks_cluster(3, settings=settings) as cluster:
        assert create(cluster, "copied").error_code == 0
        sent = produce(cluster, "a", "copied")
        for broker in cluster.brokers:
            until(lambda node=broker: copied(node, len(sent)) == sent, "all replicas have it")
            assert gets(broker) > 0


def test_a_tail_in_another_zone_costs_a_read_for_each_object() -> None:
    # ENG-60
    settings = {
        **CALM,
        "diskless.produce.commit.interval.ms": str(INTERVAL_MS),
        "diskless.produce.adaptive": "false",
        "diskless.fetch.cache.max.bytes": "0",
    }
    with racks_cluster(3, settings=settings) as cluster:
        assert create(cluster, "tail").error_code == 0
        consumer = Consumer({**client(cluster, "b"), "group.id": "none"})
        consumer.assign([TopicPartition("tail", 0, 0)])
        producer = Producer({**client(cluster, "a"), "linger.ms": 0})
        reader, before = cluster.brokers[1], gets(cluster.brokers[1])
        began = time.monotonic()
        sent = received = made = 0
        while made < 25 or received < sent:
            assert time.monotonic() < began + SECONDS_MAX
            if made < 25:
                producer.produce("tail", b"v", partition=0)
                sent += 1
            producer.poll(0)
            received += len(consumer.consume(1000, 0.01))
            made = len(objects(cluster))
        elapsed_ms = (time.monotonic() - began) * 1000
        consumer.close()
        assert made <= elapsed_ms / INTERVAL_MS + 1
        assert 0 < gets(reader) - before <= made
