"""A consolidating topic is read from its beginning all the while: leaders die, segments are copied,
the WAL is pruned, records are deleted and expire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skylog.testing.cluster import Cluster
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, 1, (), SETTINGS) as running:
        yield running


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
