"""Ranges for bulk readers, on every plane."""

from __future__ import annotations

from skylog.diskless.bulk import LocatedRange, PlannedRange, PlannedSplit, RangeRequest
from tests.contract.support import (
    B0,
    NONE,
    OUT_OF_RANGE,
    STRANGER,
    T0,
    T1,
    TIERED,
    UNKNOWN,
    Scene,
    batch,
    check,
)

ALL = 1_000


async def _plan(scene: Scene, *requests: RangeRequest, size: int, limit: int = ALL) -> PlannedRange:
    (planned,) = await scene.plane.plan_ranges(requests, size, limit)
    return planned


async def _locate(scene: Scene, request: RangeRequest, limit: int = ALL) -> LocatedRange:
    (located,) = await scene.plane.locate_batches([request], limit)
    return located


async def _of_sizes(scene: Scene, *sizes: int, count: int = 10) -> None:
    """A file for each batch, so that no two are neighbours."""
    for size in sizes:
        await scene.commit(batch(count=count, size=size), batch(T1, size=70))


@check
async def splits_are_dense_and_end_when_full(scene: Scene) -> None:
    """Split number n begins with the first batch that has n times the bytes before it."""
    await _of_sizes(scene, 100, 100, 100, 250, 70, 100)
    planned = await _plan(scene, RangeRequest(*T0), size=200)
    assert planned == PlannedRange(
        NONE,
        [
            PlannedSplit(0, 20, 200),
            PlannedSplit(20, 40, 350),
            PlannedSplit(40, 50, 70),
            PlannedSplit(50, 60, 100),
        ],
        next_offset=60,
        end_offset=60,
        log_start_offset=0,
        high_watermark=60,
        wal_start_offset=0,
    )
    one = await _plan(scene, RangeRequest(*T0), size=10_000)
    assert one.splits == [PlannedSplit(0, 60, 720)]
    each = await _plan(scene, RangeRequest(*T0), size=1)
    assert [split.byte_size for split in each.splits] == [100, 100, 100, 250, 70, 100]


@check
async def a_plan_keeps_to_its_range(scene: Scene) -> None:
    """Bounds inside batches are kept as requested; bytes are those to be read."""
    await _of_sizes(scene, 100, 100, 100)
    planned = await _plan(scene, RangeRequest(*T0, 5, 25), size=100)
    assert planned.splits == [
        PlannedSplit(5, 10, 100),
        PlannedSplit(10, 20, 100),
        PlannedSplit(20, 25, 100),
    ]
    assert (planned.next_offset, planned.end_offset) == (25, 25)
    inside = await _plan(scene, RangeRequest(*T0, 12, 13), size=100)
    assert inside.splits == [PlannedSplit(12, 13, 100)]
    for start, end in ((30, 30), (7, 7), (20, 10), (30, -1)):
        empty = await _plan(scene, RangeRequest(*T0, start, end), size=100)
        assert (empty.error, list(empty.splits), empty.next_offset) == (NONE, [], start)


@check
async def a_plan_is_made_in_pages(scene: Scene) -> None:
    """A limited number of batches per call, in request order; the next call continues."""
    await _of_sizes(scene, *[100] * 7)
    requests = [RangeRequest(*T0), RangeRequest(*T1), RangeRequest(*B0)]
    first = await scene.plane.plan_ranges(requests[:1], 100, 3)
    assert (first[0].next_offset, first[0].end_offset, len(first[0].splits)) == (30, 70, 3)
    rest = await _plan(scene, RangeRequest(*T0, 30), size=100)
    assert [*first[0].splits, *rest.splits] == [
        PlannedSplit(at, at + 10, 100) for at in range(0, 70, 10)
    ]
    exactly = await _plan(scene, RangeRequest(*T0), size=100, limit=7)
    assert exactly.next_offset == exactly.end_offset == 70
    results = await scene.plane.plan_ranges(requests, 100, 7)
    assert [result.end_offset for result in results] == [70, 7, 0]
    assert [result.next_offset for result in results[::2]] == [70, 0]
    # One coordinator has both partitions, or two have one each.
    assert (results[1].next_offset, bool(results[1].splits)) in ((0, False), (7, True))


@check
async def old_batches_are_left_out_of_plans(scene: Scene) -> None:
    """By the batch's maximum timestamp; their bytes are counted separately."""
    start = scene.now
    for age in (9, 8, 2, 7, 1):
        await scene.commit(batch(count=10, size=100 + age, batch_max_timestamp=start - age))
    planned = await _plan(scene, RangeRequest(*T0, min_timestamp=start - 2), size=100)
    assert planned.splits == [PlannedSplit(20, 30, 102), PlannedSplit(40, 50, 101)]
    assert planned.skipped_bytes == 109 + 108 + 107
    assert planned.next_offset == planned.end_offset == 50
    nothing = await _plan(scene, RangeRequest(*T0, min_timestamp=start + 1), size=100)
    assert (list(nothing.splits), nothing.skipped_bytes) == ([], 527)
    stamped = await scene.commit(batch(size=133, batch_max_timestamp=1, timestamp_type=1))
    assert stamped[0].log_append_time == start
    young = await _plan(scene, RangeRequest(*T0, min_timestamp=start), size=100)
    assert young.splits == [PlannedSplit(50, 51, 133)]


@check
async def ranges_must_exist(scene: Scene) -> None:
    """The error has both offsets, so that the caller can say what is missing."""
    await _of_sizes(scene, 100, 100, 100)
    await scene.plane.delete_records([(*T0, 15)])
    wrong = [
        RangeRequest(*T0, 14),
        RangeRequest(*T0, 31),
        RangeRequest(*T0, 15, 31),
        RangeRequest(*T0, -3),
        RangeRequest(*T0, 15, -2),
    ]
    for request in wrong:
        for result in (await _plan(scene, request, size=100), await _locate(scene, request)):
            assert result.error == OUT_OF_RANGE
            assert (result.log_start_offset, result.high_watermark) == (15, 30)
            assert (result.next_offset, result.end_offset) == (-1, -1)
    rest = await _plan(scene, RangeRequest(*T0), size=100)
    assert rest.splits == [PlannedSplit(15, 20, 100), PlannedSplit(20, 30, 100)]
    stranger = RangeRequest(STRANGER, 0)
    assert await _plan(scene, stranger, size=100) == PlannedRange(UNKNOWN)
    assert await _locate(scene, stranger) == LocatedRange(UNKNOWN)


@check
async def ranges_begin_at_the_wal_start(scene: Scene) -> None:
    """What is only in tiered storage is not planned, and the result says up to where that is."""
    await _of_sizes(scene, 100, 100, 100)
    await scene.plane.prune_to([(*T0, 15)])
    whole = RangeRequest(*T0)
    planned, located = await _plan(scene, whole, size=100), await _locate(scene, whole)
    assert planned.splits == [PlannedSplit(15, 20, 100), PlannedSplit(20, 30, 100)]
    assert [batch.stamp.base_offset for batch in located.batches] == [10, 20]
    for result in (planned, located):
        assert (result.error, result.next_offset, result.end_offset) == (NONE, 30, 30)
        assert (result.log_start_offset, result.wal_start_offset) == (0, 15)
    below = RangeRequest(*T0, end_offset=10)
    for result in (await _plan(scene, below, size=100), await _locate(scene, below)):
        assert (result.error, result.next_offset, result.end_offset) == (NONE, 15, 15)
        assert result.wal_start_offset == 15
    moved = RangeRequest(*T0, 14)
    for result in (await _plan(scene, moved, size=100), await _locate(scene, moved)):
        assert (result.error, result.next_offset, result.end_offset) == (TIERED, -1, -1)
        assert (result.log_start_offset, result.wal_start_offset) == (0, 15)
    rest = RangeRequest(*T0, 15)
    assert (await _plan(scene, rest, size=100)).splits == planned.splits
    await scene.plane.prune_to([(*T0, 30)])
    nothing = await _plan(scene, whole, size=100)
    assert (list(nothing.splits), nothing.next_offset, nothing.wal_start_offset) == ([], 30, 30)


@check
async def located_batches_are_those_of_a_find(scene: Scene) -> None:
    """Every batch that overlaps the range, page by page."""
    await _of_sizes(scene, 100, 200, 300, 400)
    (found,) = await scene.find((T0, 0))
    located = await _locate(scene, RangeRequest(*T0))
    assert list(located.batches) == list(found.batches)
    assert (located.next_offset, located.end_offset, located.high_watermark) == (40, 40, 40)
    some = await _locate(scene, RangeRequest(*T0, 15, 31))
    assert [batch.stamp.base_offset for batch in some.batches] == [10, 20, 30]
    assert (some.next_offset, some.end_offset) == (31, 31)
    first = await _locate(scene, RangeRequest(*T0, 5), 2)
    assert [batch.stamp.base_offset for batch in first.batches] == [0, 10]
    assert (first.next_offset, first.end_offset) == (20, 40)
    exact = await _locate(scene, RangeRequest(*T0), 4)
    assert (len(exact.batches), exact.next_offset) == (4, 40)
    both = await scene.plane.locate_batches([RangeRequest(*T0), RangeRequest(*T1, 1)], 4)
    assert len(both[0].batches) == 4
    assert (len(both[1].batches), both[1].next_offset) in ((0, 1), (3, 4))


@check
async def old_batches_are_not_located(scene: Scene) -> None:
    start = scene.now
    for age in (9, 2, 8, 1, 7):
        await scene.commit(batch(count=10, batch_max_timestamp=start - age))
    young = await _locate(scene, RangeRequest(*T0, min_timestamp=start - 2))
    assert [batch.stamp.base_offset for batch in young.batches] == [10, 30]
    assert young.next_offset == 50
    found: list[int] = []
    at = 0
    while at < 50:
        page = await _locate(scene, RangeRequest(*T0, at, 50, start - 2), 1)
        found += [batch.stamp.base_offset for batch in page.batches]
        assert page.next_offset > at
        at = page.next_offset
    assert found == [10, 30]
    none = await _locate(scene, RangeRequest(*T0, min_timestamp=start))
    assert (list(none.batches), none.next_offset) == ([], 50)
