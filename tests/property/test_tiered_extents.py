"""Ranges of remote segments against a model: the offsets asked for, each from one extent."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skylog.bulk.verify import batches_in_segment
from skylog.client.bulk import BatchLocation, Region, Split
from skylog.kernel.ids import ZERO_UUID
from skylog.tiered.reading import locating
from skylog.tiered.reading.locating import Extent, RangeFound, RangeWanted
from skylog.tiered.reading.tables import OffsetTable
from skylog.tiered.segments import IndexType, RemoteSegment
from tests.unit.tiered.reading_world import FIRST_MS, Remote, play, stored

EPOCHS = ((0, 0),)


def offsets_in(remote: Remote, extent: Extent) -> list[int]:
    """What a client takes from an extent, and never more than it was told."""
    data = remote.logs[extent.segment.id][extent.start : extent.end]
    location = BatchLocation(
        "key",
        extent.start,
        extent.end - extent.start,
        extent.base_offset,
        extent.last_offset,
        -1,
        -1,
        0,
        Region.TIERED,
        extent.segment.size,
    )
    split = Split("t", ZERO_UUID, 0, extent.base_offset, extent.last_offset + 1, 0, True)
    batches = batches_in_segment(split, location, data)
    return [
        offset
        for batch in batches
        for offset in range(batch.base_offset, batch.last_offset + 1)
        if extent.base_offset <= offset <= extent.last_offset
    ]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 200)), min_size=1, max_size=60),
    st.integers(1, 2000),
    st.integers(1, 4000),
    st.data(),
)
def test_extents_have_every_offset_once(
    shape: list[tuple[int, int]], interval: int, bytes_max: int, data: st.DataObject
) -> None:
    remote, batches, base = Remote(), [], data.draw(st.integers(0, 1000))
    first = base
    for count, size in shape:
        batches.append(stored(base, *([b"x" * size] * count)))
        base += count
    segment = remote.put(batches, interval=interval)
    start = data.draw(st.integers(first, base - 1))
    end = data.draw(st.integers(start + 1, base))
    table = OffsetTable(segment, remote.indexes[segment.id, IndexType.OFFSET])
    extents = list(locating.cut(segment, table, start, end, bytes_max))
    found = [offset for extent in extents for offset in offsets_in(remote, extent)]
    assert found == list(range(start, end))
    # What is read beyond a share is what lies between some entries of the index, and no more.
    largest = max(batch.size for batch in batches)
    for extent in extents:
        assert extent.end - extent.start <= bytes_max + 4 * (interval + largest)


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6),
    st.integers(0, 7),
    st.integers(1, 5),
    st.data(),
)
@example([2, 3], 0, 1, None)
def test_pages_of_extents_follow_each_other(
    segments: list[int], age: int, extents_max: int, data: st.DataObject | None
) -> None:
    """Segments that are too old are left out, and nothing else is."""
    remote, base = Remote(), 0
    kept: set[int] = set()
    for number, count in enumerate(segments):
        offsets = range(base, base + count)
        remote.put([stored(at, b"v", timestamp=FIRST_MS + number) for at in offsets])
        if number >= age:
            kept.update(offsets)
        base += count
    start = 0 if data is None else data.draw(st.integers(0, base - 1))
    offset, found, pages = start, [], 0
    while offset < base:
        wanted = RangeWanted(offset, base + 5, FIRST_MS + age, extents_max, EPOCHS)
        page: RangeFound = play(remote, locating.locate(remote.log, wanted))
        assert len(page.extents) <= extents_max
        assert page.next_offset > offset
        found += [one for extent in page.extents for one in offsets_in(remote, extent)]
        offset, pages = page.next_offset, pages + 1
    assert offset == base
    assert found == [one for one in range(start, base) if one in kept]


def test_one_answer_looks_at_so_many_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if all are too old: the reader goes on behind them."""
    monkeypatch.setattr(locating, "SEGMENTS_MAX", 3)
    remote = Remote()
    for at in range(8):
        remote.put([stored(at, b"v")])
    pages = []
    offset = 0
    while offset < 8:
        wanted = RangeWanted(offset, 8, FIRST_MS + 1, 9, EPOCHS)
        page: RangeFound = play(remote, locating.locate(remote.log, wanted))
        pages.append((page.next_offset, page.has_more))
        offset = page.next_offset
    assert pages == [(3, True), (6, True), (8, False)]


def test_a_segment_that_is_small_and_wanted_whole_needs_no_index() -> None:
    remote = Remote()
    segment: RemoteSegment = remote.put([stored(at, b"v") for at in range(10)])
    remote.indexes.clear()
    page = play(remote, locating.locate(remote.log, RangeWanted(0, 10, -1, 9, EPOCHS)))
    assert [(one.start, one.end) for one in page.extents] == [(0, segment.size)]
    # One that is damaged is made anew from the segment.
    remote.indexes[segment.id, IndexType.OFFSET] = b"\xff" * 16
    page = play(remote, locating.locate(remote.log, RangeWanted(4, 7, -1, 9, EPOCHS)))
    assert [one for extent in page.extents for one in offsets_in(remote, extent)] == [4, 5, 6]
