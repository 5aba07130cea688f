"""Coordinators on several brokers: found at their leader, asked again when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.bundles import commit_outcomes
from skylog.diskless.coordinator.moves import Moves
from skylog.diskless.plane import FindRequest, TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.diskless_commit_file_response import (
    DisklessCommitBatchResult,
    DisklessCommitFileResponse,
)
from skylog.wire.messages.diskless_find_batches_request import (
    DisklessFindBatchesPartition,
    DisklessFindBatchesRequest,
    DisklessFindBatchesTopic,
)
from tests.unit.diskless.cluster_world import World, until_known, world
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC
from tests.waiting import eventually

T2: TopicPartition = (TOPIC, 2)
PLENTY = 1 << 30


@asynccontextmanager
async def three(directory: Path, coordinators: int = 3) -> AsyncIterator[World]:
    """Three brokers; each partition of a topic has the coordinator of its number."""
    async with world(directory, 3, lambda partition: partition[1] % coordinators) as opened:
        yield opened


async def test_commits_for_one_broker_are_one_request(tmp_path: Path) -> None:
    # DC-55
    async with three(tmp_path) as opened:
        await opened.lead(0, 1)
        await opened.lead(1, 1)
        await opened.lead(2, 0)
        sender = opened.members[0]
        await sender.plane.create_partitions([(TOPIC, "a", 3)])
        file = sender.home.file((T0, 1), (T1, 2), (T2, 3), owners=(2, 0, 1))
        results = await sender.plane.commit_file(file)
        assert [one.assigned_base_offset for one in results] == [0, 0, 0]
        # One request to the broker of two coordinators, none to itself.
        assert opened.sent["DisklessCommitFileRequest"] == 1


async def test_parts_that_are_ready_together_go_together(tmp_path: Path) -> None:
    """As the writer sends them, by coordinator. A part without batches is sent, too."""
    # DC-55 partly, DC-54 partly
    async with three(tmp_path) as opened:
        await opened.lead(0, 1)
        await opened.lead(1, 1)
        await opened.lead(2, 2)
        sender = opened.members[0]
        await sender.plane.create_partitions([(TOPIC, "a", 3)])
        whole = sender.home.file((T0, 1), owners=(0, 1, 2))
        empty = sender.home.file(key=whole.object_key, owners=(0, 1, 2))
        parts = await asyncio.gather(
            sender.plane.commit_part(whole, 0), sender.plane.commit_part(empty, 1)
        )
        assert [len(part) for part in parts] == [1, 0]
        assert opened.sent["DisklessCommitFileRequest"] == 1
        (described,) = await opened.members[2].plane.describe_files([whole.object_key])
        assert described.has_live_batches


async def test_a_broker_that_leads_no_more_refuses_and_changes_nothing(tmp_path: Path) -> None:
    # DC-30
    async with three(tmp_path, 1) as opened:
        await opened.lead(0, 1)
        sender = opened.members[0]
        await sender.plane.create_partitions([(TOPIC, "a", 1)])
        end = opened.partitions[0].log.log_end_offset
        opened.leaders[0] = 2  # metadata is ahead of broker 2, or behind broker 1
        with pytest.raises(KafkaError) as refused:
            await sender.plane.commit_file(sender.home.file((T0, 1)))
        assert refused.value.code is ErrorCode.NOT_COORDINATOR
        assert not refused.value.ambiguous
        assert opened.partitions[0].log.log_end_offset == end
        await opened.lead(0, 1)
        (result,) = await sender.plane.commit_file(sender.home.file((T0, 1)))
        assert result.assigned_base_offset == 0


async def test_a_deposed_leader_is_not_waited_for(tmp_path: Path) -> None:
    """A commit in flight there has an unknown outcome; the new leader knows it."""
    # DC-24 partly, DC-36 partly
    async with three(tmp_path, 1) as opened:
        await opened.lead(0, 1)
        sender = opened.members[0]
        await sender.plane.create_partitions([(TOPIC, "a", 1)])
        opened.partitions[0].held = True
        file = sender.home.file((T0, 4))
        commit = asyncio.ensure_future(sender.plane.commit_file(file))
        log = opened.partitions[0].log
        await eventually(lambda: log.log_end_offset > log.high_watermark)
        opened.partitions[0].held = False
        opened.partitions[0].commit()
        moving = asyncio.ensure_future(opened.lead(0, 2))
        try:
            first = await commit
        except KafkaError as error:
            assert error.ambiguous
            first = []
        await moving
        (again,) = await until_known(lambda: sender.plane.commit_file(file))
        assert again.assigned_base_offset == 0
        assert again.duplicate
        assert not first or first[0].assigned_base_offset == 0
        (info,) = await sender.plane.log_info([T0])
        assert info.high_watermark == 4


async def test_a_wait_ends_when_the_leader_does_not_answer_any_more(tmp_path: Path) -> None:
    async with three(tmp_path, 1) as opened:
        await opened.lead(0, 1)
        sender = opened.members[0]
        await sender.plane.create_partitions([(TOPIC, "a", 1)])
        opened.partitions[0].held = True
        commit = asyncio.ensure_future(sender.plane.commit_file(sender.home.file((T0, 1))))
        await eventually(lambda: len(opened.partitions[0].log.batches) == 2)
        # Broker 1 is cut off: it neither unloads nor answers.
        opened.leaders[0] = 2
        sender.cluster.leaders_changed()
        with pytest.raises(KafkaError) as unknown:
            await commit
        assert unknown.value.ambiguous


async def test_commits_wake_all_waiters(tmp_path: Path) -> None:
    """One wait with each coordinator that leads elsewhere, whichever broker commits."""
    async with three(tmp_path) as opened:
        for number in range(3):
            await opened.lead(number, 1 + number % 2)
        heard: list[dict[TopicPartition, int]] = [{}, {}, {}]
        for member, told in zip(opened.members, heard, strict=True):
            member.plane.watch(told.__setitem__)
        await opened.members[0].plane.create_partitions([(TOPIC, "a", 3)])
        for count, member in enumerate(opened.members, 1):
            file = member.home.file((T0, 1), (T2, 1), owners=(0, 2))
            await member.plane.commit_file(file)
            expected = {T0: count, T2: count}
            await eventually(lambda now=expected: all(now.items() <= t.items() for t in heard))
        await opened.lead(0, 0)
        file = opened.members[2].home.file((T0, 5))
        await until_known(lambda: opened.members[2].plane.commit_file(file))
        await eventually(lambda: all(told[T0] == 8 for told in heard))
        waits = {lane for lane in opened.lanes if lane[1].startswith("wait-")}
        assert len(waits) <= 4  # (broker, coordinator): three at first, one after the move


async def test_commits_without_a_listener_are_reported_later(tmp_path: Path) -> None:
    async with three(tmp_path, 1) as opened:
        await opened.lead(0, 1)
        await opened.members[1].plane.create_partitions([(TOPIC, "a", 1)])
        heard: dict[TopicPartition, int] = {}
        opened.members[0].plane.watch(heard.__setitem__)
        opened.cut.add(0)
        member = opened.members[1]
        await member.plane.commit_file(member.home.file((T0, 7)))
        opened.cut.clear()
        await eventually(lambda: heard.get(T0) == 7)


async def test_files_are_handed_over_between_brokers(tmp_path: Path) -> None:
    """An unavailable next owner is asked again; a new leader continues."""
    # DC-44 partly, DC-47, DC-48
    async with three(tmp_path) as opened:
        for number in range(3):
            await opened.lead(number, number)
        plane = opened.members[0].plane
        await plane.create_partitions([(TOPIC, "a", 3)])
        file = opened.members[0].home.file((T0, 1), (T1, 1), (T2, 1), owners=(0, 1, 2))
        await plane.commit_file(file)
        key, later = file.object_key, opened.clock.now_ms() + 1
        for partition in (T1, T0):
            await plane.delete_records([(*partition, 1)])

        async def deletable(node: int) -> list[str]:
            return await opened.members[node].plane.files_to_delete(later, 0)

        opened.cut.add(1)
        assert await deletable(0) == []  # the next owner is unavailable, so the file stays
        (held,) = await opened.members[0].cluster.find(0, ask.FindFiles([key]))
        assert held is not None
        opened.cut.clear()
        assert await deletable(0) == []
        (given,) = await opened.members[0].cluster.find(0, ask.FindFiles([key]))
        assert given is None
        # The second owner's leader fails before it hands the file on.
        await opened.lead(1, 0)
        assert await deletable(0) == []
        assert await deletable(2) == []  # it has a live batch
        await plane.delete_records([(*T2, 1)])
        assert await deletable(2) == [key]
        await opened.members[2].plane.confirm_deleted([key])
        (described,) = await plane.describe_files([key])
        assert described.error is ErrorCode.RESOURCE_NOT_FOUND


async def test_a_silent_coordinator_is_not_taken_for_one_that_knows_nothing(tmp_path: Path) -> None:
    # DC-52 partly
    async with three(tmp_path) as opened:
        for number in range(3):
            await opened.lead(number, number)
        opened.cut.add(2)
        with pytest.raises(KafkaError):
            await opened.members[0].plane.describe_files([opened.members[0].home.key()])


async def test_what_only_a_leader_does_is_refused_elsewhere(tmp_path: Path) -> None:
    async with three(tmp_path, 1) as opened:
        await opened.lead(0, 1)
        plane = opened.members[0].plane
        await plane.create_partitions([(TOPIC, "a", 1)])
        (retained,) = await plane.enforce_retention([(*T0, 0, -1)], 10)
        assert retained.error is ErrorCode.NOT_COORDINATOR
        assert await plane.known_topics() == []


async def test_a_follower_answers_finds_when_it_is_asked_to(tmp_path: Path) -> None:
    """It lags a little: offsets that it does not have yet are not out of range."""
    # DC-18
    async with three(tmp_path, 1) as opened:
        await opened.lead(0, 1)
        plane = opened.members[0].plane
        await plane.create_partitions([(TOPIC, "a", 1)])
        await plane.commit_file(opened.members[0].home.file((T0, 3)))
        follower = opened.members[2]
        follower.home.coordinators.partition_followed(0, opened.partitions[0])
        standby = follower.home.coordinators.standby(0)
        assert standby is not None
        await eventually(lambda: standby.applied_offset == 2)

        async def ask_it(offset: int, *, allowed: bool) -> tuple[int, int, int]:
            asked = DisklessFindBatchesPartition(0, offset, PLENTY)
            request = DisklessFindBatchesRequest(
                PLENTY, 0, [DisklessFindBatchesTopic(TOPIC, [asked])], allow_follower=allowed
            )
            response = await follower.api.find_batches(request)
            one = response.topics[0].partitions[0]
            return one.error_code, len(one.batches), one.high_watermark

        assert await ask_it(0, allowed=False) == (ErrorCode.NOT_COORDINATOR, 0, -1)
        assert await ask_it(0, allowed=True) == (ErrorCode.NONE, 1, 3)
        assert await ask_it(9, allowed=True) == (ErrorCode.NONE, 0, 3)
        # Its own consumers are served from it while there is no leader.
        opened.leaders[0] = -1
        (found,) = await follower.plane.find_batches([FindRequest(*T0, 0, PLENTY)], PLENTY)
        assert [batch.stamp.last_offset for batch in found.batches] == [2]
        (elsewhere,) = await plane.find_batches([FindRequest(*T0, 0, PLENTY)], PLENTY)
        assert elsewhere.error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_an_answer_without_a_part_leaves_its_outcome_open() -> None:
    response = DisklessCommitFileResponse(
        batches=[DisklessCommitBatchResult(ErrorCode.NONE, None, 5, -1, 0)]
    )

    class Part:
        batches = ("one",)

    outcome = commit_outcomes({3: Part()}, response)[3]  # type: ignore[dict-item]
    assert outcome.code is ErrorCode.REQUEST_TIMED_OUT
    assert outcome.ambiguous


def test_places_of_an_earlier_leader_are_not_taken_for_our_own() -> None:
    earlier, moves = Moves(now_ms=1_000), Moves(now_ms=1_001, kept_max=2)
    earlier.note(T0, 1)
    assert moves.after(earlier.place) is None
    assert moves.after(-1) is None
    place = moves.place
    moves.note(T0, 1)
    moves.note(T1, 1)
    moves.note(T0, 2)
    assert moves.after(place) == {T0: 2, T1: 1}
    assert moves.after(place + 2) == {T0: 2}
    assert moves.after(moves.place) == {}
    moves.note(T2, 1)  # T1 is forgotten
    assert moves.after(place) is None
    assert moves.after(place + 2) == {T0: 2, T2: 1}
