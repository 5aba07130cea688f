"""A fetcher and its leader, without sockets."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.segment import Segment
from skylog.replication.fetcher_pool import Fetchers
from skylog.replication.partition import Partition
from skylog.replication.ports import FetchPorts, FetchSettings
from skylog.replication.throttle import ReplicationQuota
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from skylog.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.log.support import batch, open_log
from tests.unit.replication.support import Host, state
from tests.waiting import eventually

TOPIC_ID = Uuid(b"t" * 16)
OWN, LEADER, OTHER = 1, 2, 3
SETTINGS = FetchSettings(node_id=OWN, wait_ms_max=0, backoff_ms=1)


class Leader:
    """Answers fetches from a script; others wait for ever."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.asked: list[tuple[int, str]] = []
        self.answers: list[Any] = []
        self.always: Any = None
        self.offsets = {-1: 0, -2: 0}
        self._more = asyncio.Event()

    async def send(
        self,
        node_id: int,
        request: Any,
        version: int | None = None,
        *,
        lane: str = "",
        timeout_ms: int | None = None,
    ) -> Any:
        if not isinstance(request, FetchRequest):
            wanted = request.topics[0].partitions[0]
            answer = ListOffsetsPartitionResponse(0, offset=self.offsets[wanted.timestamp])
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [answer])])
        self.requests.append(request)
        self.asked.append((node_id, lane))
        while not self.answers and self.always is None:
            self._more.clear()
            await self._more.wait()
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if self.answers else self.always
        if isinstance(answer, Exception):
            raise answer
        return answer

    def say(self, *answers: Any) -> None:
        self.answers += answers
        self._more.set()


def answer(**data: Any) -> FetchResponse:
    given = {"high_watermark": 0, "log_start_offset": 0, **data}
    partition = PartitionData(partition_index=0, **given)
    return FetchResponse(
        session_id=7, responses=[FetchableTopicResponse("", TOPIC_ID, [partition])]
    )


def records(tmp_path: Path, *epochs: int, start: int = 0) -> memoryview:
    source = open_log(tmp_path / f"source-{start}-{len(epochs)}")
    if start:
        source.truncate_fully_and_start_at(start)
    for epoch in epochs:
        source.appender.append([batch(b"v")], epoch, 1)
    return source.reader.read(
        start, 1 << 20, source.log_end_offset, min_one=True, block=True
    ).buffer


class World:
    def __init__(self, tmp_path: Path) -> None:
        self.leader = Leader()
        self.quota = ReplicationQuota(2, 1_000, SystemClock())
        ports = FetchPorts(
            peers=self.leader,
            clock=SystemClock(),
            broker_epoch=lambda: 11,
            quota=self.quota,
        )
        self.fetchers = Fetchers(SETTINGS, ports)
        log = open_log(tmp_path / "t-0")
        self.partition = Partition(Host(OWN), "t", 0, TOPIC_ID, log)
        self.log = log

    def follow(self, epoch: int, leader: int = LEADER) -> None:
        self.partition.update(state(leader, epoch, (OWN, LEADER, OTHER)))
        self.fetchers.follow(self.partition)

    async def requests(self, count: int) -> Any:
        """The last of so many fetches."""
        await eventually(lambda: len(self.leader.requests) >= count)
        return self.leader.requests[count - 1]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    made.fetchers.start()
    yield made
    await made.fetchers.close()


def said(request: Any) -> tuple[int, int, int] | None:
    if not request.topics:
        return None
    found = request.topics[0].partitions[0]
    return found.fetch_offset, found.last_fetched_epoch, found.current_leader_epoch


async def test_no_request_is_sent_before_the_broker_is_registered(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.follow(4)
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.leader.requests == []
    world.fetchers.start()
    request = await world.requests(1)
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (OWN, 11)
    await world.fetchers.close()


async def test_records_are_appended_and_watermarks_followed(world: World, tmp_path: Path) -> None:
    world.follow(4)
    assert said(await world.requests(1)) == (0, -1, 4)
    world.leader.say(answer(records=records(tmp_path, 2, 4), high_watermark=1))
    assert said(await world.requests(2)) == (2, 4, 4)
    assert (world.log.log_end_offset, world.log.high_watermark) == (2, 1)
    world.leader.say(answer(high_watermark=2, log_start_offset=1))
    request = await world.requests(3)
    assert (world.log.high_watermark, world.log.log_start_offset) == (2, 1)
    # The leader learns the new log start; a change of the high watermark alone is not sent.
    assert request.topics[0].partitions[0].log_start_offset == 1
    world.leader.say(FetchResponse(session_id=7))
    assert said(await world.requests(4)) is None
    assert world.fetchers.lag_max == 0


async def test_a_diverging_log_is_truncated_and_checked_again(world: World, tmp_path: Path) -> None:
    for epoch in (1, 1, 3):
        world.log.appender.append([batch(b"v")], epoch, 1)
    world.follow(5)
    assert said(await world.requests(1)) == (3, 3, 5)
    diverging = EpochEndOffset(1, 1)
    world.leader.say(answer(diverging_epoch=diverging, high_watermark=9))
    assert said(await world.requests(2)) == (1, 1, 5)
    assert world.log.log_end_offset == 1
    assert world.log.high_watermark == 0  # the rest of that response is ignored


async def test_an_answer_that_comes_too_late_is_dropped(world: World, tmp_path: Path) -> None:
    """The leader epoch has changed since, though it is the same broker."""
    world.follow(4)
    await world.requests(1)
    world.follow(5)
    world.leader.say(answer(records=records(tmp_path, 4), high_watermark=1))
    assert said(await world.requests(2)) == (0, -1, 5)
    assert world.log.log_end_offset == 0


async def test_another_leader_is_asked_by_another_fetcher(world: World, tmp_path: Path) -> None:
    world.follow(4)
    await world.requests(1)
    world.follow(5, OTHER)
    await world.requests(2)
    assert [node for node, _ in world.leader.asked] == [LEADER, OTHER]
    world.partition.update(state(OWN, 6, (OWN, LEADER, OTHER)))
    world.fetchers.follow(world.partition)
    assert world.fetchers.followed_count == 0


async def test_out_of_range_the_log_starts_over(world: World, tmp_path: Path) -> None:
    world.log.appender.append([batch(b"old")], 1, 1)
    world.leader.offsets = {-1: 60, -2: 50}
    world.follow(4)
    await world.requests(1)
    world.leader.say(answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert said(await world.requests(2)) == (50, -1, 4)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (50, 50)
    data = records(tmp_path, 4, start=50)
    world.leader.say(answer(records=data, high_watermark=51, log_start_offset=50))
    assert said(await world.requests(3)) == (51, 4, 4)


async def test_errors_are_waited_out(world: World, tmp_path: Path) -> None:
    world.follow(4)
    await world.requests(1)
    world.leader.say(
        answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        answer(error_code=ErrorCode.KAFKA_STORAGE_ERROR),  # the leader's disk, not ours
        KafkaError(ErrorCode.NETWORK_EXCEPTION, ambiguous=True),
        FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        ValueError("a bug"),
        answer(records=bytes(100), high_watermark=1),  # no batches at all
    )
    await eventually(lambda: not world.leader.answers)
    world.leader.always = answer(records=records(tmp_path, 4), high_watermark=1)
    world.leader.say()
    await eventually(lambda: world.log.high_watermark == 1)
    world.leader.always = None
    assert world.fetchers.failed_count == 0


async def test_a_fenced_follower_waits_for_metadata(world: World, tmp_path: Path) -> None:
    world.follow(4)
    await world.requests(1)
    world.leader.say(answer(error_code=ErrorCode.FENCED_LEADER_EPOCH))
    await eventually(lambda: world.fetchers.failed_count == 1)
    world.follow(5)
    world.leader.say(FetchResponse())
    await eventually(lambda: said(world.leader.requests[-1]) == (0, -1, 5))
    assert world.fetchers.failed_count == 0


async def test_a_full_disk_is_waited_out(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    def full(*_: Any) -> None:
        nonlocal tried
        tried += 1
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(type(world.log.appender), "append_as_follower", full)
        world.follow(4)
        world.leader.always = answer(records=records(tmp_path, 4), high_watermark=1)
        world.leader.say()
        await eventually(lambda: tried > 1)
    await eventually(lambda: world.log.high_watermark == 1)
    world.leader.always = None
    assert world.fetchers.failed_count == 0


async def test_a_log_that_is_offline_is_given_up(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(Segment, "sync_log", broken)
    world.log.appender.append([batch(b"v")], 4, 1)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        world.log.durability.sync()
    world.follow(4)
    await world.requests(1)
    world.leader.say(answer(records=records(tmp_path, 4, start=1), high_watermark=1))
    await eventually(lambda: world.fetchers.failed_count == 1)


async def test_over_its_quota_a_replica_that_lags_waits(world: World, tmp_path: Path) -> None:
    world.quota.update(1, {"t": None})
    world.follow(4)
    await world.requests(1)
    world.leader.say(answer(records=records(tmp_path, 4, 4), high_watermark=10))
    await eventually(lambda: world.log.log_end_offset == 2)
    forgotten = await world.requests(2)
    assert said(forgotten) is None
    assert forgotten.forgotten_topics_data[0].partitions == [0]
    world.leader.say(FetchResponse(session_id=0))
    world.quota.update(10**9, {"t": None})
    assert said(await world.requests(3)) == (2, 4, 4)


async def test_more_fetchers_share_the_work(world: World, tmp_path: Path) -> None:
    world.follow(4)
    await world.requests(1)
    world.fetchers.resize(4)
    await world.requests(2)
    assert len(set(world.leader.asked)) <= 2
    assert world.fetchers.followed_count == 1
    world.fetchers.resize(4)
    await world.fetchers.close()
    world.fetchers.resize(2)
    world.fetchers.follow(world.partition)
    assert world.fetchers.followed_count == 0
