"""Warm copies of coordinators on brokers that follow their logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.leadership import LeadershipRounds
from skylog.diskless.coordinator.links import ReplicaLinks
from skylog.diskless.coordinator.own_api import OwnApi
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.standby import Standby
from skylog.diskless.coordinator.state import digest
from skylog.diskless.plane import FindRequest
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.replicated.lifecycle import State
from skylog.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.unit.diskless.coordinator.support import T0, TOPIC, FakePartition, Home

PLENTY = 1 << 30
LEADER, FOLLOWER = 1, 2


class Peers:
    """The follower's requests go to the leader's API; ``spoil`` changes the responses."""

    def __init__(self, leader: Home) -> None:
        self._api = OwnApi(leader.coordinators, InlineExecutor())
        self.asked: list[int] = []
        self.spoil: Callable[[Any], None] = lambda _: None

    async def send(self, node_id: int, request: Any, _version: Any = None, **_more: Any) -> Any:
        self.asked.append(node_id)
        response = await self._api.fetch_snapshot(request)
        self.spoil(response)
        return response


class Pair:
    """A leader, and a follower whose log is a copy of the leader's."""

    def __init__(self, directory: Path) -> None:
        self.leader = Home(directory / "leader")
        self.leader.partitions[0] = FakePartition()
        self.replica = FakePartition()
        self.peers = Peers(self.leader)
        links = ReplicaLinks(
            FOLLOWER, self.peers, lambda _: [LEADER, FOLLOWER], InlineExecutor(), piece_bytes=100
        )
        self.follower = Home(directory / "follower", links=links)
        self.follower.rng.seed(8)  # no two brokers make the same keys

    def replicate(self, *, known: int | None = None) -> None:
        """Replicate to the follower; ``known`` is the high watermark that it learns."""
        log, own = self.leader.partitions[0].log, self.replica.log
        if log.log_start_offset > own.log_end_offset:  # too far behind: it starts over
            own.batches, own.log_end_offset = [], log.log_start_offset
        own.log_start_offset = log.log_start_offset
        own.batches = [
            *(batch for batch in own.batches if batch.next_offset > own.log_start_offset),
            *(batch for batch in log.batches if batch.base_offset >= own.log_end_offset),
        ]
        own.log_end_offset = log.log_end_offset
        self.replica.commit(log.high_watermark if known is None else known)

    async def commit(self, files: int = 1) -> None:
        for _ in range(files):
            file = self.leader.file((T0, 2))
            await self.leader.coordinators.submit(0, ask.CommitFile(file))

    def follow(self) -> Standby:
        self.follower.coordinators.partition_followed(0, self.replica)
        standby = self.follower.coordinators.standby(0)
        assert standby is not None
        return standby


@asynccontextmanager
async def pair(directory: Path) -> AsyncIterator[Pair]:
    opened = Pair(directory)
    await opened.leader.lead(0)
    await opened.leader.coordinators.submit(0, ask.CreatePartitions([(TOPIC, "a", [0])]))
    try:
        yield opened
    finally:
        await opened.follower.coordinators.close()
        await opened.leader.coordinators.close()


async def caught_up(standby: Standby, end_offset: int) -> None:
    async with asyncio.timeout(30):
        while standby.applied_offset != end_offset:  # noqa: ASYNC110 - it is polled
            await asyncio.sleep(0.001)


def state_of(standby: Standby) -> str:
    machine = standby._machine
    assert machine is not None
    return digest(machine.state)


async def test_a_follower_has_the_leaders_state(tmp_path: Path) -> None:
    """Never more than its replica knows to be committed."""
    # DC-28
    async with pair(tmp_path) as opened:
        await opened.commit(5)
        opened.replicate(known=4)
        standby = opened.follow()
        await caught_up(standby, 4)
        opened.replicate()
        await caught_up(standby, 6)
        assert state_of(standby) == await opened.leader.digest()
        await opened.commit(3)
        opened.replicate()
        await caught_up(standby, 9)
        assert state_of(standby) == await opened.leader.digest()


async def test_a_new_leader_applies_only_the_rest(tmp_path: Path) -> None:
    async with pair(tmp_path) as opened:
        await opened.commit(6)
        opened.replicate(known=5)
        await caught_up(opened.follow(), 5)
        reads: list[int] = []
        read = opened.replica.log.read

        def counted(offset: int, *more: Any, **others: Any) -> Any:
            reads.append(offset)
            return read(offset, *more, **others)

        opened.replica.log.read = counted  # type: ignore[method-assign]
        opened.leader.coordinators.partition_resigned(0)
        opened.replica.commit()
        opened.replica.leader_epoch = 1
        opened.follower.coordinators.partition_led(0, opened.replica)
        await opened.follower.coordinators.loaded()
        runtime = opened.follower.coordinators.get(0)
        assert runtime.state is State.ACTIVE
        assert runtime.applied_offset == 7
        assert min(reads) >= 4  # the last applied batch, to compare, and what follows
        file = opened.follower.file((T0, 1), key=opened.follower.key())
        (result,) = await opened.follower.coordinators.submit(0, ask.CommitFile(file))
        assert result.assigned_base_offset == 12


async def test_a_copy_that_was_told_more_than_its_replica_knows_waits(tmp_path: Path) -> None:
    """After a restart the high watermark is not known yet; the cache is kept all the same."""
    async with pair(tmp_path) as opened:
        await opened.commit(4)
        opened.replicate()
        await caught_up(opened.follow(), 5)
        opened.follower.coordinators.partition_resigned(0)
        await opened.follower.coordinators.loaded()
        opened.replica.log.high_watermark = 1
        standby = opened.follow()
        for _ in range(50):
            await asyncio.sleep(0)
        assert standby.applied_offset == -1
        opened.replica.commit()
        await caught_up(standby, 5)
        assert state_of(standby) == await opened.leader.digest()


async def test_a_log_that_is_cut_under_the_copy(tmp_path: Path) -> None:
    async with pair(tmp_path) as opened:
        await opened.commit(4)
        opened.replicate()
        standby = opened.follow()
        await caught_up(standby, 5)
        # An unclean election: another history from offset 3 on.
        opened.leader.partitions[0].truncate(3)
        await opened.leader.lead(0)
        opened.replica.truncate(3)
        opened.replica.commit()
        await opened.commit(1)
        opened.replicate()
        await caught_up(standby, 4)
        assert state_of(standby) == await opened.leader.digest()


async def test_an_empty_follower_of_a_pruned_log_fetches_a_snapshot(tmp_path: Path) -> None:
    # DC-41
    async with pair(tmp_path) as opened:
        runtime = opened.leader.coordinators.get(0)
        for _ in range(3):
            await opened.commit(3)
            await runtime.snapshot()
        assert opened.leader.partitions[0].log.log_start_offset > 0
        opened.replicate()
        standby = opened.follow()
        await caught_up(standby, 10)
        assert state_of(standby) == await opened.leader.digest()
        assert len(opened.peers.asked) > 1  # in pieces
        assert [one.offset for one in standby.snapshots.ids()] == [10]
        # From now on it could restart without its cache.
        opened.follower.coordinators.partition_resigned(0)
        await opened.follower.coordinators.loaded()
        opened.follower.database.unlink()
        again = opened.follow()
        await caught_up(again, 10)
        assert state_of(again) == await opened.leader.digest()


async def test_a_new_leader_that_has_lost_everything_asks_another_replica(tmp_path: Path) -> None:
    async with pair(tmp_path) as opened:
        runtime = opened.leader.coordinators.get(0)
        for _ in range(3):
            await opened.commit(3)
            await runtime.snapshot()
        opened.replicate()
        expected = await opened.leader.digest()
        opened.follower.coordinators.partition_led(0, opened.replica)
        await opened.follower.coordinators.loaded()
        assert opened.follower.runtime().state is State.ACTIVE
        assert await opened.follower.digest() == expected


async def test_a_log_that_is_pruned_under_the_copy_brings_its_snapshot(tmp_path: Path) -> None:
    async with pair(tmp_path) as opened:
        await opened.commit(2)
        opened.replicate()
        standby = opened.follow()
        await caught_up(standby, 3)
        runtime = opened.leader.coordinators.get(0)
        for _ in range(3):
            await opened.commit(2)
            await runtime.snapshot()
        opened.replicate()
        await caught_up(standby, 9)
        async with asyncio.timeout(30):
            while not standby.snapshots.ids():  # noqa: ASYNC110 - it is polled
                await asyncio.sleep(0.001)
        assert opened.replica.log.log_start_offset <= standby.snapshots.ids()[-1].offset


@pytest.mark.parametrize("how", ["another byte", "too short"])
async def test_a_snapshot_that_came_damaged_is_not_taken(how: str, tmp_path: Path) -> None:
    async with pair(tmp_path) as opened:
        await opened.commit(3)
        await opened.leader.coordinators.get(0).snapshot()

        def spoil(response: Any) -> None:
            data = bytes(response.bytes)
            response.bytes = data[:-1] + b"?" if how == "another byte" else b""

        opened.peers.spoil = spoil
        (tmp_path / "target").mkdir()
        target = Snapshots(opened.follower.files, tmp_path / "target")
        links = opened.follower.links
        assert links is not None
        with pytest.raises(StorageError):
            await links.fetch_snapshot(0, target)
        assert target.ids() == []


async def test_a_replica_without_snapshots_says_so(tmp_path: Path) -> None:
    async with pair(tmp_path) as opened:
        links = opened.follower.links
        assert links is not None
        with pytest.raises(KafkaError) as refused:
            await links.fetch_snapshot(0, Snapshots(opened.follower.files, tmp_path / "target"))
        assert refused.value.code is ErrorCode.SNAPSHOT_NOT_FOUND
        with pytest.raises(KafkaError) as unknown:
            await links.fetch_snapshot(1, Snapshots(opened.follower.files, tmp_path / "target"))
        assert unknown.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_copy_finds_what_it_has(tmp_path: Path) -> None:
    # DC-18 partly
    async with pair(tmp_path) as opened:
        await opened.commit(2)
        opened.replicate()
        standby = opened.follow()
        await caught_up(standby, 3)
        request = ask.FindBatches(
            [FindRequest(*T0, 2, PLENTY), FindRequest(*T0, 9, PLENTY)], PLENTY
        )
        within, ahead = await opened.follower.coordinators.find_behind(0, request)
        assert [batch.stamp.base_offset for batch in within.batches] == [2]
        assert (ahead.error, ahead.high_watermark) == (ErrorCode.NONE, 4)


# --- Leadership -----------------------------------------------------------------------------------


# A replica with this value knows nothing.
HANGS = ErrorCode.REQUEST_TIMED_OUT


class Replicas:
    """In-sync replicas, which return the leader epoch that they know."""

    def __init__(self, *codes: ErrorCode | None) -> None:
        self.codes = list(codes)
        self.asked = 0

    async def send(self, node_id: int, request: Any, _version: Any = None, **_more: Any) -> Any:
        self.asked += 1
        code = self.codes[node_id]
        if code is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        if code is HANGS:
            await asyncio.Event().wait()
        partition = EpochEndOffset(code, 0)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(request.topics[0].topic, [partition])]
        )


async def leading(directory: Path, *codes: ErrorCode | None) -> tuple[Home, Replicas]:
    replicas = Replicas(*codes)
    seconds = 0.05 if HANGS in codes else 60
    links = ReplicaLinks(
        0, replicas, lambda _: [0, 1, 2], InlineExecutor(), confirm_seconds=seconds
    )
    home = Home(directory, links=links)
    await home.lead(0)
    await home.coordinators.submit(0, ask.CreatePartitions([(TOPIC, "a", [0])]))
    home.partitions[0].isr = tuple(range(len(codes)))
    return home, replicas


OK, FENCED = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((OK,), ErrorCode.NONE),
        ((OK, OK, OK), ErrorCode.NONE),
        ((OK, OK, ErrorCode.UNKNOWN_LEADER_EPOCH), ErrorCode.NONE),
        ((OK, FENCED, OK), ErrorCode.NOT_COORDINATOR),
        ((OK, OK, None), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ((OK, HANGS, OK), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ((OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
async def test_a_deposed_leader_does_not_answer_strict_reads(
    codes: tuple[ErrorCode | None, ...], expected: ErrorCode, tmp_path: Path
) -> None:
    # DC-16 partly
    home, replicas = await leading(tmp_path, *codes)
    try:
        await home.coordinators.submit(0, ask.ListOffsets([(*T0, -1)]))
        code = ErrorCode.NONE
    except KafkaError as error:
        code = error.code
        assert not error.ambiguous
    assert code is expected
    # A single replica asks no other, and finds need no confirmation.
    assert replicas.asked == len(codes) - 1
    await home.coordinators.find(0, ask.KnownTopics())
    assert replicas.asked == len(codes) - 1
    await home.coordinators.close()


async def test_one_round_is_enough_for_all_earlier_requests() -> None:
    rounds, going = 0, asyncio.Event()

    async def ask_all() -> None:
        nonlocal rounds
        rounds += 1
        await going.wait()

    asked = LeadershipRounds(ask_all)
    first = [asyncio.ensure_future(asked.confirm()) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = [asyncio.ensure_future(asked.confirm()) for _ in range(3)]
    await asyncio.sleep(0)
    assert rounds == 1
    going.set()
    await asyncio.gather(*first, *late)
    assert rounds == 2
