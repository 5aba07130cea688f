"""Partitions and their watchers; the manager that follows metadata."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from skylog.broker.partitions.port import Reader
from skylog.controller.image.topics import PartitionKind
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.log.config import LogConfig
from skylog.log.manager import LogManager
from skylog.replication.manager import ReplicaManager
from skylog.replication.partition import Partition
from skylog.replication.synced import SyncedPartition
from tests.unit.broker.support import NODE, World, classic_partitions
from tests.unit.log.support import batch
from tests.unit.replication.support import LAG_MS, Host, Nobody, state

TOPIC_ID = Uuid(bytes(range(16)))


class Watcher:
    def __init__(self) -> None:
        self.heard: list[int] = []

    def partition_moved(self, appended_bytes: int) -> None:
        self.heard.append(appended_bytes)


def test_watchers_hear_of_appends_and_of_other_changes() -> None:
    world = World()
    partition = world.create("t")
    watcher = Watcher()
    partition.watch(watcher)
    partition.watch(watcher)
    world.append("t")
    partition.delete_records_before(1)
    partition.update(state(NODE, 0, (NODE,), (NODE,)))  # nothing new
    partition.update(state(NODE, 1, (NODE,), (NODE,)))
    partition.mark_deleted()
    assert watcher.heard == [69, 0, 0, 0]
    partition.unwatch(watcher)
    partition.unwatch(watcher)
    partition.mark_deleted()
    assert len(watcher.heard) == 4


def test_a_watcher_may_leave_while_it_is_told() -> None:
    partition = World().create("t")
    heard = []

    class Leaving(Watcher):
        def partition_moved(self, appended_bytes: int) -> None:
            heard.append(self)
            for other in watchers:
                partition.unwatch(other)

    watchers = [Leaving(), Leaving()]
    for watcher in watchers:
        partition.watch(watcher)
    partition.mark_deleted()
    assert watchers[0] in heard
    assert not partition._watchers


def test_each_leader_epoch_is_noted_once() -> None:
    partition = World().create("t")
    for epoch in (1, 1, 2):
        partition.update(state(NODE, epoch, (NODE,), (NODE,)))
    partition.update(state(7, 3, (NODE, 7), (7,)))
    assert not partition.is_leader
    assert partition.log.epochs == [0, 1, 2]  # type: ignore[attr-defined]


async def test_waits_for_replicas_always_end() -> None:
    world = World()
    partition = world.create("t")
    partition.update(state(NODE, 1, (NODE, 7), (NODE, 7)))  # now a follower must have it, too
    world.append("t")
    world.append("t")
    waits = [partition.committed(offset) for offset in (1, 0)]
    assert None not in waits
    partition.update(state(7, 2, (NODE, 7), (NODE, 7)))
    for wait in waits:
        assert wait is not None
        with pytest.raises(KafkaError) as lost:
            await wait
        assert lost.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.update(state(NODE, 3, (NODE,), (NODE,)))
    assert partition.committed(1) is None
    partition.update(state(NODE, 4, (NODE, 7), (NODE, 7)))
    world.append("t")
    gone = partition.committed(2)
    assert gone is not None
    partition.mark_deleted()
    with pytest.raises(KafkaError) as deleted:
        await gone
    assert deleted.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_waiting_ends_in_the_order_of_offsets() -> None:
    world = World()
    partition = world.create("t")
    partition.update(state(NODE, 1, (NODE, 7), (NODE, 7)))
    for _ in range(3):
        world.append("t")
    waits = {offset: partition.committed(offset) for offset in (2, 0, 1)}
    heard: list[int] = []
    partition.on_commit(heard.append)
    partition.on_commit(lambda _: heard.append(-1))()  # cancelled
    given_up = waits[1]
    assert given_up is not None
    given_up.cancel()
    partition.update(state(NODE, 2, (NODE,), (NODE,)))
    await asyncio.sleep(0)
    assert heard == [3]
    assert all(wait is not None and wait.done() for wait in waits.values())


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[ReplicaManager]:
    logs = LogManager([str(tmp_path)], ManualClock(), InlineExecutor())
    logs.lock()
    await logs.start(lambda topic: LogConfig())
    nobody, host = Nobody(), Host()
    yield ReplicaManager(NODE, logs, host.clock, LAG_MS, host.brokers, nobody, nobody)
    await logs.close()


async def test_partitions_follow_metadata(manager: ReplicaManager, tmp_path: Path) -> None:
    config = LogConfig()
    partition = manager.assign("t", 0, TOPIC_ID, state(), config)
    assert partition is not None
    assert manager.assign("t", 0, TOPIC_ID, state(epoch=1), config) is partition
    assert manager.assign("t", 1, TOPIC_ID, state(replicas=(7,)), config) is None
    assert len(manager) == 1
    assert manager.get("t", 0) is partition
    assert (tmp_path / "t-0").exists()
    changed = LogConfig(segment_bytes=12345)
    manager.configure("t", changed)
    assert partition.log.config is changed
    # Moved to another broker, it is removed here.
    assert manager.assign("t", 0, TOPIC_ID, state(7, 2, (7,)), config) is None
    assert partition.deleted
    assert manager.get("t", 0) is None
    manager.delete_topic("t")
    manager.delete_topic("never was")
    assert len(manager) == 0


async def test_why_a_partition_is_not_served(manager: ReplicaManager) -> None:
    known = SimpleNamespace(kind=PartitionKind.CLASSIC)
    topics = {
        name: SimpleNamespace(name=name, partitions={0: known, 1: known})
        for name in ("t", "elsewhere")
    }
    partitions = classic_partitions(manager, SimpleNamespace(topic=topics.get), InlineExecutor())

    def refusal(topic: str, index: int, epoch: int = -1) -> ErrorCode:
        with pytest.raises(KafkaError) as refused:
            partitions.leader(topic, index, epoch)
        return refused.value.code

    manager.assign("t", 0, TOPIC_ID, state(epoch=5), LogConfig())
    manager.assign("t", 1, TOPIC_ID, state(7, 5, (NODE, 7)), LogConfig())
    assert refusal("t", 9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal("elsewhere", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal("u", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal("t", 0, 4) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal("t", 0, 6) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert refusal("t", 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal("t", 1, 6) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert partitions.leader("t", 0, 5).index == 0
    # Clients may read from a follower if they ask for it, in its epoch.
    partitions.find("t", 1).require_reader(Reader(anywhere=True), 5)
    with pytest.raises(KafkaError):
        partitions.find("t", 1).require_reader(Reader(), 5)


async def test_partitions_of_the_metadata_topic_wait_for_the_disk(manager: ReplicaManager) -> None:
    plain = manager.assign("t", 0, TOPIC_ID, state(), LogConfig())
    synced = manager.assign(METADATA_TOPIC, 0, Uuid(b"m" * 16), state(), LogConfig())
    assert type(plain) is Partition
    assert isinstance(synced, SyncedPartition)
    synced.append([batch(b"a")], 1)
    assert synced.log.high_watermark == 0
    committed = synced.committed(0)
    assert committed is not None
    await committed
    assert synced.log.durability.recovery_point == 1
