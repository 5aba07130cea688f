"""A consolidating topic is read from its beginning all the while: leaders die, segments are copied,
the WAL is pruned, records are deleted and expire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.open import open_store
from skylog.testing.cluster import Cluster
from skylog.tiered import configuration
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.integration.broker_client import Client
from tests.integration.diskless_support import Load, end_offsets
from tests.integration.looping_reader import EARLIEST, LoopingReader, looping
from tests.integration.racks_cluster import ZoneClient, ask, create, described, living
from tests.integration.tiered_topics import EARLIEST_LOCAL, alter
from tests.waiting import until

SETTINGS = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "diskless.metadata.topic.num.partitions": "3",
    "diskless.produce.commit.interval.ms": "20",
    "diskless.file.cleaner.interval.ms": "200",
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "remote.log.manager.task.retry.backoff.ms": "50",
    "remote.log.manager.task.retry.backoff.max.ms": "500",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    "rlmm.config.remote.log.metadata.topic.min.isr": "2",
    "diskless.metadata.backup.interval.ms": "0",
    "diskless.tiering.prune.interval.ms": "100",
    "diskless.tiering.prune.delay.ms": "200",
    "diskless.reassignment.grace.ms": "600000",
}
TOPIC = {
    "remote_storage_enable": "true",
    "internal_segment_bytes": "20000",
    "segment_ms": "1000",
    "retention_ms": "-1",
}
pytestmark = pytest.mark.timeout(300)


# What the store of remote segments does to every broker.
STORES: list[FaultyStore] = []
FAULTS = Faults(
    before=0.05,
    unclear=0.05,
    after=0.05,
    latency=0.1,
    truncated=0.02,
    corrupted=0.02,
    partial_delete=0.1,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    def faulty(*given: Any, **named: Any) -> FaultyStore:
        STORES.append(FaultyStore(open_store(*given, **named), Random(len(STORES))))
        return STORES[-1]

    with (
        mock.patch.object(configuration, "open_store", faulty),
        Cluster(3, 1, (), SETTINGS) as running,
    ):
        yield running
    STORES.clear()


@contextmanager
def failing_store() -> Iterator[None]:
    """The store of remote segments fails, lies, is slow, and is away for a while."""
    for store in STORES:
        store.faults = FAULTS
    try:
        yield
    finally:
        for store in STORES:
            store.faults, store.down = Faults(), False


def running(cluster: Cluster) -> list[str]:
    return [broker.bootstrap for broker in cluster.brokers if broker.running]


def wal_start(cluster: Cluster, topic: str) -> int:
    with ZoneClient(living(cluster)) as client:
        return int(client.offset(topic, EARLIEST_LOCAL).offset)


def pruned(cluster: Cluster, topic: str, reader: LoopingReader) -> None:
    """Wait until the WAL start moves on, and the reader has been through all of it since."""
    before, loops = wal_start(cluster, topic), reader.loops
    until(lambda: reader.failure or wal_start(cluster, topic) > before, "the WAL is pruned")
    until(lambda: reader.failure or reader.loops > loops + 3, "the reader goes on")


def delete_to(cluster: Cluster, topic: str, offset: int) -> None:
    wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])

    def deleted() -> bool:
        answer = ask(cluster, DeleteRecordsRequest([wanted], 30_000)).topics[0].partitions[0]
        return answer.error_code == 0 and answer.low_watermark >= offset

    until(deleted, f"deleted up to {offset}")


def kill_leader(cluster: Cluster, topic: str) -> None:
    node = described(cluster, topic)[0].leader_id
    leader = cluster.broker(node)
    leader.kill()
    until(lambda: described(cluster, topic)[0].leader_id not in (-1, node), "another one leads")
    leader.start()


def test_a_reader_from_the_beginning_sees_every_record_once(cluster: Cluster) -> None:
    # ENG-48
    topic = "looped"
    assert create(cluster, topic, 1, **TOPIC).error_code == 0
    with (
        Load(cluster.bootstrap, topic, 1, per_second=400) as load,
        looping(lambda: running(cluster), topic) as reader,
    ):
        load.wait_for(200)
        pruned(cluster, topic, reader)
        for _ in range(3):
            kill_leader(cluster, topic)
            load.wait_for(100)
            pruned(cluster, topic, reader)
        # Into the tiered part, and into what only the WAL has.
        for offset in (wal_start(cluster, topic) // 2, wal_start(cluster, topic) + 5):
            delete_to(cluster, topic, offset)
            load.wait_for(50)
            pruned(cluster, topic, reader)
        with Client(living(cluster)) as client:
            alter(client, topic, retention_bytes="30000")
        before = load.history.acknowledged_count
        until(lambda: reader.failure or earliest(cluster, topic) > before // 2, "retention goes on")
        pruned(cluster, topic, reader)
        history = load.finish()
        assert history.failed == {}
    (end,) = end_offsets(cluster.bootstrap, topic, 1).values()
    for value, offset in history.acknowledged[0].items():
        assert reader.found.get(offset, value) == value
    assert len(reader.found) >= end // 2


def earliest(cluster: Cluster, topic: str) -> int:
    with ZoneClient(living(cluster)) as client:
        return int(client.offset(topic, EARLIEST).offset)


def test_a_store_that_fails_delays_and_loses_nothing(cluster: Cluster) -> None:
    topic = "failing"
    assert create(cluster, topic, 1, **TOPIC).error_code == 0
    # A read from a store that is away, or that lies, fails; the next one may not.
    refused = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.KAFKA_STORAGE_ERROR})
    with (
        Load(cluster.bootstrap, topic, 1, per_second=400) as load,
        looping(lambda: running(cluster), topic, refused) as reader,
    ):
        load.wait_for(100)
        with failing_store():
            pruned(cluster, topic, reader)
            for store in STORES:
                store.down = True
            # Nobody who produces notices.
            load.wait_for(400)
            for store in STORES:
                store.down = False
            kill_leader(cluster, topic)
            load.wait_for(100)
            pruned(cluster, topic, reader)
        history = load.finish()
        (end,) = end_offsets(cluster.bootstrap, topic, 1).values()
        until(lambda: reader.failure or wal_start(cluster, topic) == end, "all leaves the WAL")
        loops = reader.loops
        until(lambda: reader.failure or reader.loops > loops + 1, "the reader goes on")
    assert sum(sum(store.injected.values()) for store in STORES) > 20
    assert history.failed == {}
    found = [reader.found[offset] for offset in range(end)]
    history.check({0: found})
