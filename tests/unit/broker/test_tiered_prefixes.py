"""Remote logs of partitions that this broker has no replica of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.handlers.tiered import describe_remote_log
from skylog.broker.tiered.prefixes import TieredPrefixes
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest
from tests.unit.tiered.remote_records import PARTITION, TOPIC, TOPIC_ID, History, segment
from tests.waiting import eventually

HERE, LEADER, FOLLOWER = 1, 2, 3


class Followed:
    """The remote logs that this broker follows."""

    def __init__(self) -> None:
        self.logs: dict[TopicIdPartition, RemoteLog] = {}
        self.listeners: list[Callable[[TopicIdPartition], None]] = []

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None:
        self.listeners.append(listener)

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self.logs.get(partition)

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        if partition not in self.logs:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE)
        return self.logs[partition]


class Replicas:
    """The other brokers: they answer as API 512 does, by pages of two."""

    def __init__(self) -> None:
        self.histories: dict[TopicIdPartition, History] = {}
        self.asked: list[int] = []
        self.down: set[int] = set()
        self.held = asyncio.Event()
        self.held.set()

    async def send(self, node_id: int, request: DescribeRemoteLogRequest, *, lane: str) -> Any:
        self.asked.append(node_id)
        await self.held.wait()
        if node_id in self.down:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        request.limit = min(request.limit, 2)
        context: Any = SimpleNamespace(
            services=SimpleNamespace(
                tiered=SimpleNamespace(logs={at: one.log for at, one in self.histories.items()}),
                configs=SimpleNamespace(log_config=lambda _: LogConfig(remote=True)),
                image=SimpleNamespace(topic_name=lambda _: TOPIC),
            ),
            allowed=lambda _: True,
            authorize_cluster=lambda operation, audit: True,
        )
        try:
            return describe_remote_log(context, request)
        except KafkaError as error:
            return SimpleNamespace(error_code=error.code, error_message=error.message)


class World:
    def __init__(self, segments_max: int = 1000) -> None:
        self.followed = Followed()
        self.dead: set[int] = set()
        self.replicas = Replicas()
        state = SimpleNamespace(leader=LEADER, isr=(LEADER, FOLLOWER), replicas=(FOLLOWER, LEADER))
        topic = SimpleNamespace(partitions=dict.fromkeys(range(10), state))
        image: Any = SimpleNamespace(
            topic_by_id=lambda id_: topic if id_ == TOPIC_ID else None,
            is_alive=lambda node_id: node_id not in self.dead,
        )
        logs: Any = self.followed
        peers: Any = self.replicas
        self.clock = ManualClock()
        self.prefixes = TieredPrefixes(
            logs, image, peers, HERE, self.clock, segments_max=segments_max
        )

    def tier(self, count: int, index: int = 0) -> TopicIdPartition:
        key = TopicIdPartition(TOPIC_ID, index)
        history = self.replicas.histories.setdefault(key, History())
        for number in range(1, count + 1):
            one = segment(number, number * 10 - 10, number * 10 - 1)
            history.started(one)
            history.finished(one)
        return key


async def test_all_pages_of_the_leader_are_learnt_once() -> None:
    world = World()
    key = world.tier(5)
    world.replicas.histories[key].started(segment(9, 50, 59))
    assert world.prefixes.known(key) is None
    first, second = await asyncio.gather(world.prefixes.learn(key), world.prefixes.learn(key))
    assert first is second is world.prefixes.get(key)
    assert world.replicas.asked == [LEADER] * 3
    found = [(one.start_offset, one.end_offset, one.size) for one in first.all()]
    assert found == [(n * 10, n * 10 + 9, segment(1, 0, 9).size) for n in range(5)]
    assert first.segment_for(0, 49) is not None
    assert first.segment_for(0, 50) is None  # it is not finished


async def test_what_is_followed_is_not_asked_for() -> None:
    world = World()
    world.followed.logs[PARTITION] = RemoteLog(PARTITION, TOPIC)
    assert await world.prefixes.learn(PARTITION) is world.followed.logs[PARTITION]
    assert await world.prefixes.ready(PARTITION) is world.prefixes.known(PARTITION)
    world.prefixes.learn_soon(PARTITION)
    assert world.replicas.asked == []


async def test_a_follower_tells_if_the_leader_does_not() -> None:
    world = World()
    key = world.tier(1)
    world.replicas.down.add(LEADER)
    assert len(await world.prefixes.learn(key)) == 1
    assert world.replicas.asked == [LEADER, FOLLOWER]
    world.replicas.down.add(FOLLOWER)
    world.prefixes.forget(key)
    with pytest.raises(KafkaError) as failed:
        await world.prefixes.learn(key)
    assert failed.value.code is ErrorCode.REPLICA_NOT_AVAILABLE


async def test_a_deleted_topic_is_not_asked_for() -> None:
    world = World()
    with pytest.raises(KafkaError) as failed:
        await world.prefixes.learn(TopicIdPartition(type(TOPIC_ID)(b"x" * 16), 0))
    assert failed.value.code is ErrorCode.REPLICA_NOT_AVAILABLE
    assert world.replicas.asked == []


async def test_what_is_kept_is_bounded() -> None:
    world = World(segments_max=5)
    keys = [world.tier(2, index) for index in range(3)]
    await world.prefixes.learn(keys[0])
    await world.prefixes.learn(keys[1])
    assert world.prefixes.known(keys[0]) is not None  # used last
    await world.prefixes.learn(keys[2])
    assert [world.prefixes.known(key) is not None for key in keys] == [True, False, True]
    # A single one is kept however long it is: it is being read.
    long = world.tier(7, 5)
    await world.prefixes.learn(long)
    assert [world.prefixes.known(key) is not None for key in (*keys, long)] == [False] * 3 + [True]


async def test_segments_that_cannot_be_are_left_out() -> None:
    world = World()
    key = world.tier(1)
    history = world.replicas.histories[key]
    request = DescribeRemoteLogRequest(TOPIC_ID, 0, limit=9)
    page = await world.replicas.send(LEADER, request, lane="")
    page.segments[0].end_offset = -5

    async def lie(*_: Any, **__: Any) -> Any:
        return page

    world.replicas.send = lie  # type: ignore[method-assign]
    assert len(history.log) == 1
    assert len(await world.prefixes.learn(key)) == 0


async def test_waits_for_the_metadata_topic() -> None:
    world = World()
    history = History()
    world.followed.logs[PARTITION] = history.log
    has: Callable[[RemoteLog], bool] = lambda log: log.segment_for(0, 5) is not None  # noqa: E731
    assert await world.prefixes.reaching(PARTITION, has, 0.01) is None
    waits = asyncio.ensure_future(world.prefixes.reaching(PARTITION, has, 60))
    one = segment(1, 0, 9)
    history.started(one)
    await eventually(lambda: PARTITION in world.prefixes._waiting)
    world.followed.listeners[0](PARTITION)
    await eventually(lambda: PARTITION in world.prefixes._waiting)
    assert not waits.done()
    history.finished(one)
    world.followed.listeners[0](PARTITION)
    assert await waits is history.log
    assert not world.prefixes._waiting


async def test_a_slow_answer_is_there_for_the_next_read() -> None:
    world = World()
    key = world.tier(1)
    world.replicas.held.clear()
    assert await world.prefixes.reaching(key, lambda log: bool(len(log)), 0.01) is None
    world.replicas.held.set()
    await eventually(lambda: world.prefixes.known(key) is not None)
    assert world.replicas.asked == [LEADER]
    world.replicas.held.clear()
    world.prefixes.learn_soon(key)
    await world.prefixes.close()
    assert not world.prefixes._asking


async def test_reads_to_come_do_not_ask_again_and_again() -> None:
    world = World()
    key = world.tier(1)
    world.replicas.down |= {LEADER, FOLLOWER}
    for _ in range(3):
        world.prefixes.learn_soon(key)
        await eventually(lambda: not world.prefixes._asking)
    assert world.replicas.asked == [LEADER, FOLLOWER]
    # One that needs it now asks all the same.
    with pytest.raises(KafkaError):
        await world.prefixes.learn(key)
    assert len(world.replicas.asked) == 4
    world.replicas.down.clear()
    world.clock.advance(30_000)
    world.prefixes.learn_soon(key)
    await eventually(lambda: world.prefixes.known(key) is not None)


async def test_neither_dead_brokers_nor_this_one_are_asked() -> None:
    world = World()
    key = world.tier(1)
    world.dead.add(LEADER)
    await world.prefixes.learn(key)
    assert world.replicas.asked == [FOLLOWER]
    world.prefixes._node_id = FOLLOWER
    with pytest.raises(KafkaError):
        await world.prefixes.learn(key)
    assert world.replicas.asked == [FOLLOWER]
