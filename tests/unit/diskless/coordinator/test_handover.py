"""Files of several coordinators: which one owns them, and which may delete them when."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.plane import CommitResult, FileToCommit, TopicPartition
from skylog.diskless.planes.topic import TopicPlane
from skylog.kernel.errors import ErrorCode, KafkaError
from tests.unit.diskless.coordinator.support import TOPIC, Home, home

P: list[TopicPartition] = [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)]
WINDOW_MS = RuntimeSettings().rules.commit_age_ms_max + RuntimeSettings().rules.commit_ahead_ms_max
NONE = ErrorCode.NONE
ORDERS = list(itertools.permutations(range(3)))


@asynccontextmanager
async def three() -> AsyncIterator[tuple[Home, TopicPlane]]:
    """Three coordinators, each with one partition."""
    async with home() as opened:
        await opened.lead(0, 1, 2)
        plane = TopicPlane(opened.coordinators, lambda partition: partition[1], opened.rng)
        await plane.create_partitions([(TOPIC, "a", 3)])
        yield opened, plane


def shared(opened: Home, owners: Sequence[int] = (0, 1, 2)) -> FileToCommit:
    return opened.file(*((partition, 1) for partition in P), owners=owners)


async def empty(plane: TopicPlane, index: int) -> None:
    """Delete all records of a partition."""
    assert (await plane.delete_records([(TOPIC, index, -1)]))[0].error is NONE


async def deletable(opened: Home, plane: TopicPlane) -> list[str]:
    return await plane.files_to_delete(opened.clock.now_ms() + 1, 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("owners", ORDERS)
async def test_a_file_goes_only_after_its_last_batch(
    order: Sequence[int], owners: Sequence[int]
) -> None:
    # DC-44
    async with three() as (opened, plane):
        file = shared(opened, owners)
        assert [r.error for r in await plane.commit_file(file)] == [NONE] * 3
        for index in order[:2]:
            await empty(plane, index)
            assert await deletable(opened, plane) == []
            assert (await plane.describe_files([file.object_key]))[0][:2] == (NONE, True)
        await empty(plane, order[2])
        assert await deletable(opened, plane) == [file.object_key]
        await plane.confirm_deleted([file.object_key])
        assert await deletable(opened, plane) == []
        (described,) = await plane.describe_files([file.object_key])
        assert described.error is ErrorCode.RESOURCE_NOT_FOUND


async def test_owners_are_the_same_everywhere_and_their_order_varies() -> None:
    # DC-43
    async with three() as (opened, plane):
        firsts = set()
        for _ in range(20):
            file = shared(opened, owners=())
            await plane.commit_file(file)
            states = [
                (await opened.runtime(number).find(ask.FindFiles([file.object_key])))[0]
                for number in range(3)
            ]
            assert len({state.coordinator_ids for state in states}) == 1
            assert sorted(states[0].coordinator_ids) == [0, 1, 2]
            firsts.add(states[0].coordinator_ids[0])
        assert firsts == {0, 1, 2}


async def test_a_handover_outlasts_the_receiver() -> None:
    # Q18: it is logged; crash point "hand-over sent, reply lost"
    async with three() as (opened, plane):
        file = shared(opened)
        await plane.commit_file(file)
        await empty(plane, 0)
        await deletable(opened, plane)
        (state,) = await opened.runtime(1).find(ask.FindFiles([file.object_key]))
        assert state.received
        opened.coordinators.partition_resigned(1)
        await opened.coordinators.loaded()
        for path in opened.directory.glob("*-1/state.sqlite*"):
            path.unlink()
        await opened.lead(1)
        assert await opened.runtime(1).find(ask.FindFiles([file.object_key])) == [state]
        # A repeat is harmless.
        await opened.runtime(1).submit(ask.ReceiveFile(state))
        await empty(plane, 1)
        await empty(plane, 2)
        assert await deletable(opened, plane) == [file.object_key]


async def test_an_owner_that_is_away_keeps_the_file() -> None:
    # DC-47
    async with three() as (opened, plane):
        file = shared(opened)
        await plane.commit_file(file)
        for index in range(3):
            await empty(plane, index)
        opened.coordinators.partition_resigned(1)
        assert await deletable(opened, plane) == []
        await opened.coordinators.loaded()
        await opened.lead(1)
        assert await deletable(opened, plane) == [file.object_key]


async def test_a_file_that_only_a_later_owner_has_waits_for_the_commit_window() -> None:
    # Q18; crash point "one of two coordinators committed"
    async with three() as (opened, plane):
        file = opened.file((P[2], 1), owners=(0, 1, 2))
        await opened.runtime(2).submit(ask.CommitFile(file))
        await empty(plane, 2)
        assert await deletable(opened, plane) == []
        opened.clock.advance(WINDOW_MS + 1)
        assert await deletable(opened, plane) == [file.object_key]


async def test_an_heir_that_does_not_know_the_file_takes_it_after_the_window() -> None:
    async with three() as (opened, plane):
        file = opened.file((P[0], 1), owners=(0, 1))
        await opened.runtime(0).submit(ask.CommitFile(file))
        await empty(plane, 0)
        assert await deletable(opened, plane) == []
        opened.clock.advance(WINDOW_MS + 1)
        received_ms = opened.clock.now_ms()
        assert await plane.files_to_delete(received_ms, 0) == []
        assert await deletable(opened, plane) == [file.object_key]
        # A later commit is refused, though its object is still there.
        late = replace(file, batches=[replace(file.batches[0], partition=1)])
        (result,) = await opened.runtime(1).submit(ask.CommitFile(late))
        assert result.error is ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_unavailable_coordinator_delays_only_its_own_files() -> None:
    # DC-21
    async with three() as (opened, plane):
        file = opened.file((P[0], 1), owners=(0,))
        await plane.commit_file(file)
        await empty(plane, 0)
        opened.partitions[2].isr = (0, 1)
        opened.partitions[2].commit(0)
        opened.coordinators.partition_led(2, opened.partitions[2])  # and is still loading
        assert await deletable(opened, plane) == [file.object_key]
        with pytest.raises(KafkaError):  # a coordinator that cannot answer may know the file
            await plane.describe_files([file.object_key])
        opened.partitions[2].commit()


async def test_grace_is_counted_from_the_last_batch_of_all() -> None:
    # DC-49
    async with three() as (opened, plane):
        file = opened.file((P[0], 1), (P[1], 1), owners=(0, 1))
        await plane.commit_file(file)
        await empty(plane, 0)
        opened.clock.advance(1000)
        await empty(plane, 1)
        emptied_ms = opened.clock.now_ms()
        assert await plane.files_to_delete(emptied_ms, 0) == []
        assert await plane.files_to_delete(emptied_ms + 1, 0) == [file.object_key]


async def test_a_part_that_is_refused_leaves_the_others() -> None:
    async with three() as (opened, plane):
        opened.coordinators.partition_resigned(1)
        results = await plane.commit_file(shared(opened))
        codes = [result.error for result in results]
        assert codes == [NONE, ErrorCode.NOT_COORDINATOR, NONE]
        assert results[1] == CommitResult(codes[1], message=results[1].message)


async def test_one_unknown_part_makes_all_unknown_and_the_repetition_settles_it() -> None:
    async with three() as (opened, plane):
        file = shared(opened, owners=())
        partition = opened.partitions[1]
        partition.append_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, ambiguous=True)
        with pytest.raises(KafkaError) as raised:
            await plane.commit_file(file)
        assert raised.value.ambiguous
        partition.append_error = None
        opened.timers.fire()
        await opened.coordinators.loaded()
        results = await plane.commit_file(file)
        assert [(r.error, r.assigned_base_offset) for r in results] == [(NONE, 0)] * 3
        assert [r.duplicate for r in results] == [True, False, True]


async def test_without_a_coordinator_nothing_is_answered() -> None:
    async with home() as opened:
        plane = TopicPlane(opened.coordinators, lambda partition: None, opened.rng)
        with pytest.raises(KafkaError) as raised:
            await plane.commit_file(shared(opened))
        assert raised.value.code is ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError) as raised:
            await plane.create_partitions([(TOPIC, "a", 1)])
        assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
