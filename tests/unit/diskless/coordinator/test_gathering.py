"""Commits are applied to the cache together: what is visible before, and when they are applied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from skylog.diskless.coordinator import gathering
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.turn import Turn
from skylog.diskless.plane import EARLIEST, LATEST, MAX_TIMESTAMP, FindRequest
from skylog.kernel.errors import ErrorCode
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.limits import DISKLESS_GATHERED_BATCHES_MAX, DISKLESS_INLINE_BATCHES_MAX
from tests.unit.diskless.coordinator.support import T0, TOPIC, Home, home

T = TypeVar("T")
CREATE = ask.CreatePartitions([(TOPIC, "a", [0, 1])])
FIND = ask.FindBatches([FindRequest(*T0, 0, 1 << 20)], 1 << 20)


@pytest.fixture
def forever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that does not end any wait."""
    monkeypatch.setattr(gathering, "DISKLESS_GATHERED_SECONDS_MAX", 3600.0)


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[Turn]:
    """Turns on a thread."""
    turns: list[Turn] = []

    async def run(_: InlineExecutor, work: Callable[[], T]) -> T:
        turn = getattr(getattr(work, "func", None), "__self__", None)
        if isinstance(turn, Turn):
            turns.append(turn)
        return work()

    monkeypatch.setattr(InlineExecutor, "run", run)
    return turns


async def started(opened: Home) -> Any:
    await opened.lead(0)
    runtime = opened.runtime()
    await runtime.submit(CREATE)
    await runtime.caught_up()
    assert runtime.applied_offset == 2
    return runtime


def batches(opened: Home, count: int) -> ask.CommitFile:
    return ask.CommitFile(opened.file(*[(T0, 1)] * count))


@pytest.mark.usefixtures("forever")
async def test_a_commit_is_found_before_the_cache_has_it() -> None:
    async with home() as opened:
        runtime = await started(opened)
        moved = []
        opened.coordinators.watch(lambda partition, offset: moved.append((partition, offset)))
        for _ in range(3):
            await runtime.submit(batches(opened, 2))
        assert runtime.applied_offset == 2
        assert moved == [(T0, 2), (T0, 4), (T0, 6)]
        (found,) = await runtime.find(FIND)
        assert [batch.stamp.base_offset for batch in found.batches] == list(range(6))
        assert runtime.applied_offset == 2
        await runtime.caught_up()
        assert runtime.applied_offset == 5
        assert await runtime.find(FIND) == [found]
        assert len(moved) == 3  # no listener is notified twice


@pytest.mark.usefixtures("forever")
@pytest.mark.parametrize(
    "question", [ask.ListOffsets([(*T0, 0)]), ask.DeleteRecords([(*T0, 1)]), CREATE]
)
async def test_reads_that_need_the_cache_do_not_wait(question: Any) -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(batches(opened, 2))
        await runtime.submit(question)
        assert runtime.applied_offset >= 3


@pytest.mark.usefixtures("forever")
async def test_offsets_that_have_names_are_known_without_the_cache() -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(batches(opened, 2))
        listed = await runtime.submit(ask.ListOffsets([(*T0, LATEST), (*T0, EARLIEST)]))
        assert [one.offset for one in listed] == [2, 0]
        assert runtime.applied_offset == 2
        # A deletion is visible once it is applied.
        await runtime.submit(ask.DeleteRecords([(*T0, 1)]))
        listed = await runtime.submit(ask.ListOffsets([(*T0, LATEST), (*T0, EARLIEST)]))
        assert [one.offset for one in listed] == [2, 1]


@pytest.mark.usefixtures("forever")
async def test_offsets_that_have_names_show_what_was_asked_for_before() -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(batches(opened, 2))
        opened.partitions[0].held, opened.partitions[0].isr = True, (0, 1)
        commit = asyncio.ensure_future(runtime.submit(batches(opened, 3)))
        await asyncio.sleep(0)
        listing = asyncio.ensure_future(runtime.submit(ask.ListOffsets([(*T0, LATEST)])))
        for _ in range(50):
            await asyncio.sleep(0)
        # Nor before it is certain that it stays.
        late = asyncio.ensure_future(runtime.submit(ask.ListOffsets([(*T0, LATEST)])))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not (listing.done() or late.done())
        opened.partitions[0].commit()
        assert [(await one)[0].offset for one in (listing, late)] == [5, 5]
        await commit


@pytest.mark.usefixtures("forever")
async def test_enough_of_them_go() -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(batches(opened, DISKLESS_GATHERED_BATCHES_MAX - 1))
        assert runtime.applied_offset == 2
        await runtime.submit(batches(opened, 1))
        async with asyncio.timeout(30):
            while runtime.applied_offset != 4:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)


async def test_a_few_of_them_go_after_a_while() -> None:
    async with home() as opened:
        runtime = await started(opened)
        for end_offset in (3, 4):
            await runtime.submit(batches(opened, 1))
            async with asyncio.timeout(30):
                while runtime.applied_offset != end_offset:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.001)


@pytest.mark.usefixtures("forever")
async def test_a_repetition_of_one_that_waits_has_the_same_answer() -> None:
    async with home() as opened:
        runtime = await started(opened)
        commit = batches(opened, 2)
        first = await runtime.submit(commit)
        again = await runtime.submit(commit)
        assert runtime.applied_offset == 2
        assert [result.assigned_base_offset for result in again] == [0, 1]
        assert again == [result._replace(duplicate=True) for result in first]
        await runtime.caught_up()
        assert await runtime.submit(commit) == again


@pytest.mark.usefixtures("forever")
async def test_the_tail_stops_at_what_must_be_applied_first() -> None:
    async with home() as opened:
        runtime = await started(opened)
        opened.partitions[0].held, opened.partitions[0].isr = True, (0, 1)
        wanted = [batches(opened, 3), ask.DeleteRecords([(*T0, 2)]), batches(opened, 1)]
        tasks = [asyncio.ensure_future(runtime.submit(one)) for one in wanted]
        for _ in range(50):
            await asyncio.sleep(0)
        opened.partitions[0].commit()
        (found,) = await runtime.find(FIND)
        assert (found.log_start_offset, found.high_watermark) == (2, 4)
        await asyncio.gather(*tasks)


@pytest.mark.usefixtures("forever")
async def test_what_waits_is_not_lost_with_the_leader() -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(batches(opened, 2))
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        await opened.lead(0)
        (found,) = await opened.runtime().find(FIND)
        assert found.high_watermark == 2


async def test_short_turns_do_not_leave_the_loop(handed_over: list[Turn]) -> None:
    async with home() as opened:
        runtime = await started(opened)
        handed_over.clear()
        await runtime.submit(batches(opened, DISKLESS_INLINE_BATCHES_MAX))
        assert handed_over == []
        await runtime.submit(batches(opened, DISKLESS_INLINE_BATCHES_MAX + 1))
        assert any(turn.requests for turn in handed_over)


async def test_a_few_offsets_that_have_names_do_not_leave_the_loop(
    handed_over: list[Turn],
) -> None:
    """Of a partition without writes, so that only the cache knows it."""
    named, unknown = (TOPIC, 1, LATEST), (TOPIC, 7, EARLIEST)
    async with home() as opened:
        runtime = await started(opened)
        handed_over.clear()
        listed = await runtime.submit(ask.ListOffsets([named, unknown]))
        assert [(one.error, one.offset) for one in listed] == [
            (ErrorCode.NONE, 0),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]
        assert handed_over == []
        for slow in (
            [(TOPIC, 1, 0)],
            [named, (TOPIC, 1, MAX_TIMESTAMP)],
            [named] * (DISKLESS_INLINE_BATCHES_MAX + 1),
        ):
            handed_over.clear()
            await runtime.submit(ask.ListOffsets(slow))
            assert [turn.requests for turn in handed_over] == [[ask.ListOffsets(slow)]]


async def test_hourly_expiry_does_not_block_the_loop(handed_over: list[Turn]) -> None:
    async with home() as opened:
        runtime = await started(opened)
        handed_over.clear()
        opened.clock.advance(60 * 60 * 1000)
        for end_offset in (3, 4):
            await runtime.submit(batches(opened, DISKLESS_GATHERED_BATCHES_MAX))
            async with asyncio.timeout(30):
                while runtime.applied_offset != end_offset:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0)
        (turn,) = handed_over  # of two that have applied the same
        assert [batch.end_offset for batch in turn.committed] == [3]
