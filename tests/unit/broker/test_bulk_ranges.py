"""Plans and locations over both tiers, while what this broker knows of them is behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.assembly.bulk_access import BulkAccess
from skylog.broker.tiered.bulk_ranges import TieredRange, TieredRanges
from skylog.client.bulk import Region
from skylog.diskless.batch import BatchCoordinate, Extent, Stamp
from skylog.diskless.bulk import LocatedRange, PlannedRange, RangeRequest
from skylog.diskless.plane import LogInfo, TopicPartition
from skylog.diskless.rules import ranges
from skylog.diskless.rules.offsets import LogState, log_info
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.reading import locating
from tests.unit.tiered.reading_world import FIRST_MS, Reading, Remote, stored
from tests.unit.tiered.remote_records import PARTITION

NONE = ErrorCode.NONE
NOT_YET = ErrorCode.REPLICA_NOT_AVAILABLE
END = 100


class Plane:
    """A partition of batches with ten records, of which the WAL has those from ``wal_start`` on."""

    def __init__(self) -> None:
        self.log_start = 0
        self.wal_start = 0
        # Called before each answer of the WAL.
        self.meanwhile: Callable[[], None] = lambda: None

    @property
    def state(self) -> LogState:
        return LogState(self.log_start, END, 1000, self.wal_start)

    async def log_info(self, places: Sequence[TopicPartition]) -> list[LogInfo]:
        return [log_info(self.state) for _ in places]

    def _batches(self, span: ranges.Span) -> list[BatchCoordinate]:
        return [
            BatchCoordinate(
                batch_id=base,
                extent=Extent(object_key="wal", byte_offset=base, byte_size=10),
                stamp=Stamp(
                    base_offset=base,
                    last_offset=base + 9,
                    log_append_timestamp=-1,
                    batch_max_timestamp=FIRST_MS,
                    timestamp_type=0,
                ),
            )
            for base in range(self.wal_start, END, 10)
            if base + 9 >= span.start and base < span.end
        ]

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        self.meanwhile()

        def page(_: object, span: ranges.Span, limit: int) -> ranges.SplitPage:
            sized = map(ranges.SizedBatch.of, ranges.within(self._batches(span), span, limit))
            return ranges.split_page(sized, span, split_bytes)

        return ranges.run(ranges.plan(requests, max_batches, lambda _: self.state), page)

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        self.meanwhile()

        def look(_: object, span: ranges.Span, limit: int) -> list[BatchCoordinate]:
            return ranges.within(self._batches(span), span, limit)

        return ranges.run(ranges.locate(requests, max_batches, lambda _: self.state), look)


class Prefixes:
    """What this broker knows, and what it would learn."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.is_known = True
        self.learnt = 0

    def known(self, _: object) -> RemoteLog | None:
        return self.remote.log if self.is_known else None

    async def reaching(
        self, _: object, has: Callable[[RemoteLog], bool], seconds: float
    ) -> RemoteLog | None:
        self.learnt += 1
        self.is_known = True
        return self.remote.log if has(self.remote.log) else None


class World:
    def __init__(self, folder: Path) -> None:
        self.plane = Plane()
        self.remote = Remote()
        self.prefixes = Prefixes(self.remote)
        self.reading = Reading(folder, self.remote)
        engine: Any = SimpleNamespace(plane=self.plane, bulk=BulkAccess())
        prefixes: Any = self.prefixes
        self.ranges = TieredRanges(
            engine, prefixes, self.reading.reader, AivenLayout(), "s3://bucket/tiered"
        )

    def tier(self, start: int, end: int) -> None:
        bases = range(start, end, 10)
        self.remote.put([stored(at, *[b"x"] * 10, timestamp=FIRST_MS + at) for at in bases])

    async def plan(self, **asked: Any) -> list[tuple[int, int, int]]:
        """All pages of a plan, as a handler puts them together."""
        splits: list[tuple[int, int, int]] = []
        left = RangeRequest(*PARTITION, **asked)
        while True:
            (page,) = await self.ranges.plan([left], 50)
            if page.error:
                raise KafkaError(page.error)
            splits += [(one.start_offset, one.end_offset, one.region) for one in page.splits]
            if page.next_offset >= page.end_offset:
                return splits
            assert page.next_offset > left.start_offset
            left = RangeRequest(*PARTITION, **{**asked, "start_offset": page.next_offset})

    async def locate(self, start: int = 0, end: int = END, most: int = 100) -> TieredRange:
        (found,) = await self.ranges.locate([RangeRequest(*PARTITION, start, end)], most)
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def covered(found: TieredRange) -> list[tuple[int, int]]:
    extents = [(one.base_offset, one.last_offset) for one in found.extents]
    return extents + [(one.stamp.base_offset, one.stamp.last_offset) for one in found.wal.batches]


def edges(splits: list[tuple[int, int, int]]) -> list[int]:
    assert all(one[1] == two[0] for one, two in pairwise(splits))
    return [splits[0][0], *(end for _, end, _ in splits)]


async def test_segments_come_before_the_wal(world: World) -> None:
    world.tier(0, 40)
    world.tier(40, 60)
    world.plane.wal_start = 40
    splits = await world.plan()
    assert edges(splits)[0] == 0
    assert edges(splits)[-1] == END
    tiered = [one for one in splits if one[2] == Region.TIERED]
    assert tiered == splits[: len(tiered)]
    assert tiered[-1][1] == 60
    found = await world.locate()
    assert covered(found) == [(0, 39), (40, 59)] + [(at, at + 9) for at in range(60, END, 10)]
    assert (found.wal.next_offset, found.wal.high_watermark) == (END, END)
    # The WAL alone, for audits.
    assert edges(await world.plan(wal_only=True)) == [40, 90, END]
    # Nothing is asked of segments that hold nothing of the range.
    assert covered(await world.locate(70, 80)) == [(70, 79)]


@pytest.mark.parametrize("start", [-2, 0, 25])
async def test_what_the_wal_no_longer_has_is_learnt(world: World, start: int) -> None:
    """This broker has no replica, and has never been asked."""
    world.tier(0, 50)
    world.plane.wal_start = 50
    world.prefixes.is_known = False
    splits = await world.plan(start_offset=start)
    assert edges(splits)[0] == max(start, 0)
    assert edges(splits)[-1] == END
    assert world.prefixes.learnt == 1
    world.prefixes.is_known = False
    found = await world.locate(max(start, 0))
    assert covered(found)[0] == (max(start, 0), 49)
    assert world.prefixes.learnt == 2


async def test_a_broker_that_is_behind_passes_nothing_over(world: World) -> None:
    world.tier(0, 30)
    world.plane.wal_start = 50
    (page,) = await world.ranges.plan([RangeRequest(*PARTITION)], 50)
    assert (page.error, page.next_offset) == (NONE, 30)
    (page,) = await world.ranges.plan([RangeRequest(*PARTITION, 30)], 50)
    assert page.error is NOT_YET
    found = await world.locate()
    assert (covered(found), found.wal.next_offset, found.wal.error) == ([(0, 29)], 30, NONE)
    assert (await world.locate(30)).wal.error is NOT_YET
    # A moment later it knows.
    world.tier(30, 50)
    assert edges(await world.plan())[-1] == END
    assert covered(await world.locate(30))[0] == (30, 49)


async def test_a_prune_between_the_questions_is_asked_again(world: World) -> None:
    """Neither a gap nor an error that a reader gives up on."""

    def prune() -> None:
        world.plane.wal_start = 90

    world.tier(0, 50)
    world.plane.wal_start = 50
    world.plane.meanwhile = prune
    found = await world.locate()
    assert (covered(found), found.wal.next_offset, found.wal.error) == ([(0, 49)], 50, NONE)
    world.plane.wal_start = 50
    assert (await world.locate(60)).wal.error is NOT_YET
    world.plane.wal_start = 50
    (page,) = await world.ranges.plan([RangeRequest(*PARTITION, 60)], 50)
    assert page.error is NOT_YET


async def test_a_store_that_is_away_leaves_what_the_wal_has(world: World) -> None:
    world.tier(0, 60)
    world.plane.wal_start = 30
    indexes = dict(world.remote.indexes)
    world.remote.indexes.clear()
    assert covered(await world.locate(40))[0] == (40, 49)
    assert (await world.locate(20)).wal.error is ErrorCode.KAFKA_STORAGE_ERROR
    world.remote.indexes.update(indexes)
    assert covered(await world.locate(20))[0] == (20, 59)


async def test_answers_have_so_much_room(world: World) -> None:
    world.tier(0, 20)
    world.tier(20, 60)
    world.plane.wal_start = 60
    asked = [RangeRequest(*PARTITION, 0, END) for _ in range(3)]
    for most in range(1, 25):
        found = await world.ranges.locate(asked, most)
        assert 0 < sum(len(one.extents) + len(one.wal.batches) for one in found) <= most
        for one in found:
            assert one.wal.error is NONE
            ends = covered(one)
            assert one.wal.next_offset == (ends[-1][1] + 1 if ends else 0)
    at, pages = 0, 0
    while at < END:
        page = await world.locate(at, most=1)
        at, pages = page.wal.next_offset, pages + 1
    assert pages == 6


async def test_segments_that_are_too_old_are_passed_over_page_by_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locating, "SEGMENTS_MAX", 2)
    for start in range(0, 60, 10):
        world.tier(start, start + 10)
    world.plane.wal_start = 60
    asked = RangeRequest(*PARTITION, 0, END, FIRST_MS + 50)
    (first,) = await world.ranges.locate([asked], 100)
    assert (first.wal.error, first.wal.next_offset, covered(first)) == (NONE, 20, [])
    (last,) = await world.ranges.locate([replace(asked, start_offset=40)], 100)
    assert (last.wal.next_offset, covered(last)) == (60, [(50, 59)])


async def test_deleted_records_and_other_bounds_are_refused_as_ever(world: World) -> None:
    world.tier(0, 60)
    world.plane.wal_start = 60
    world.plane.log_start = 25
    for start, end in ((20, END), (30, END + 1), (END + 1, END + 1)):
        assert (await world.locate(start, end)).wal.error is ErrorCode.OFFSET_OUT_OF_RANGE
        (page,) = await world.ranges.plan([RangeRequest(*PARTITION, start, end)], 50)
        assert (page.error, page.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 25)
    assert edges(await world.plan())[0] == 25
    assert covered(await world.locate(25))[0] == (25, 59)


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_empty_range_is_empty_in_any_tier(world: World, is_known: bool) -> None:
    world.tier(0, 60)
    world.plane.wal_start = 60
    for at in (0, 30, 60, 80, END):
        world.prefixes.is_known = is_known
        assert await world.plan(start_offset=at, end_offset=at) == []
        world.prefixes.is_known = is_known
        found = await world.locate(at, at)
        assert (found.wal.error, covered(found), found.wal.next_offset) == (NONE, [], at)
    # Of the WAL alone, what is tiered is empty, and begins where the WAL does.
    (pruned,) = await world.ranges.locate([RangeRequest(*PARTITION, 20, 50, wal_only=True)], 9)
    assert (pruned.wal.error, pruned.wal.next_offset, pruned.wal.log_start_offset) == (NONE, 60, 60)
    assert await world.plan(start_offset=0, end_offset=50, wal_only=True) == []


async def test_the_smallest_splits_do_not_make_a_plan_without_end(world: World) -> None:
    world.tier(0, 100)
    world.plane.wal_start = 100
    (page,) = await world.ranges.plan([RangeRequest(*PARTITION)], 1)
    assert [(one.start_offset, one.end_offset) for one in page.splits] == [
        (at, at + 1) for at in range(100)
    ]
    assert world.ranges.byte_size(PARTITION) == world.remote.log.finished_bytes > 0
