"""Requests to objects: every batch in one of them, near ones merged, none too large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skylog.bulk.extents import (
    EXTENT_BYTES_MAX,
    GAP_BYTES_MAX,
    Part,
    Windows,
    extents_of,
)
from skylog.client.bulk import BatchLocation, Split
from skylog.kernel.ids import ZERO_UUID

MIB = 1024 * 1024


def batch(key: str, at: int, size: int, base: int = 0) -> BatchLocation:
    return BatchLocation(key, at, size, base, base, -1, -1, 0)


@st.composite
def batches(draw: st.DrawFn) -> list[BatchLocation]:
    found = []
    for key in draw(st.lists(st.sampled_from("abc"), unique=True)):
        at = 1
        for _ in range(draw(st.integers(0, 8))):
            at += draw(st.sampled_from([0, 0, 1, GAP_BYTES_MAX, GAP_BYTES_MAX + 1]))
            size = draw(st.integers(1, 6 * MIB))
            found.append(batch(key, at, size))
            at += size
    return draw(st.permutations(found))


@given(batches())
def test_every_batch_is_whole_in_one_request(found: list[BatchLocation]) -> None:
    extents = extents_of(found)
    assert sorted(place for one in extents for place in one.places) == list(range(len(found)))
    for one in extents:
        inside = [found[place] for place in one.places]
        assert {each.object_key for each in inside} == {one.key}
        assert one.start == min(each.byte_offset for each in inside)
        assert one.end == max(each.byte_offset + each.byte_size for each in inside)
        assert one.end - one.start <= EXTENT_BYTES_MAX
        # No more unused bytes are read than the allowed gaps.
        wasted = one.end - one.start - sum(each.byte_size for each in inside)
        assert wasted <= GAP_BYTES_MAX * (len(inside) - 1)


def test_near_batches_share_a_request_and_far_ones_do_not() -> None:
    near = [batch("a", 1, 10), batch("a", 11 + GAP_BYTES_MAX, 10)]
    far = [batch("a", 1, 10), batch("a", 12 + GAP_BYTES_MAX, 10)]
    assert len(extents_of(near)) == 1
    assert len(extents_of(far)) == 2
    assert len(extents_of([batch("a", 1, 10), batch("b", 11, 10)])) == 2


@given(batches(), st.integers(1, 20 * MIB), st.integers(1, 20 * MIB))
def test_windows_hold_everything_in_order(
    found: list[BatchLocation], size: int, first: int
) -> None:
    splits = [Split("t", ZERO_UUID, place, 0, 1, 0, True) for place in range(2)]
    parts = [Part(splits[0], tuple(found)), Part(splits[1], tuple(found[:2]))]
    packing = Windows(size, first)
    windows = [window for part in parts for window in packing.add(part)] + [packing.rest]
    flat = [(part.split, one) for window in windows for part in window for one in part.batches]
    assert flat == [(part.split, one) for part in parts for one in part.batches]
    allowed = min(first, size)
    for window in windows:
        held = sum(part.bytes for part in window)
        assert held <= allowed or sum(len(part.batches) for part in window) == 1
        allowed = min(2 * allowed, size)
