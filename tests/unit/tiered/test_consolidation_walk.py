"""The walk over what is put: anything but the segment that was put together is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.objects.store import ObjectError, Outcome
from skylog.tiered.consolidation.walk import SegmentWalk
from skylog.wire.batch import patch_offset
from tests.unit.log.support import batch

COUNTS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 200)), min_size=1, max_size=8)
BASE = 70


def _log(counts: list[tuple[int, int]], epoch: int = 0) -> tuple[bytes, int]:
    """The bytes of a segment, and its end offset."""
    offset, parts = BASE, []
    for count, size in counts:
        one = bytearray(batch(*[b"x" * size] * count).buffer)
        patch_offset(one, offset, epoch)
        parts.append(bytes(one))
        offset += count
    return b"".join(parts), offset


def _walk(log: bytes, cuts: list[int], end: int, epoch: int = 0) -> list[str]:
    """Walk the log in pieces; returns what is wrong with it."""
    told: list[str] = []
    walk = SegmentWalk(BASE, end, epoch, told.append)
    edges = [0, *sorted(cut % (len(log) + 1) for cut in cuts), len(log)]
    try:
        for start, stop in itertools.pairwise(edges):
            walk.take(memoryview(log)[start:stop])
        walk.end()
    except ObjectError as error:
        assert error.kind is Outcome.REFUSED
        assert told
    return told


@given(counts=COUNTS, cuts=st.lists(st.integers(0, 5000)))
def test_a_sound_segment_passes_in_whatever_pieces(
    counts: list[tuple[int, int]], cuts: list[int]
) -> None:
    log, end = _log(counts)
    assert _walk(log, cuts, end) == []


@given(counts=COUNTS, cuts=st.lists(st.integers(0, 5000)), data=st.data())
def test_a_flipped_bit_is_found(
    counts: list[tuple[int, int]], cuts: list[int], data: st.DataObject
) -> None:
    log, end = _log(counts)
    at = data.draw(st.integers(0, len(log) * 8 - 1))
    spoiled = bytearray(log)
    spoiled[at // 8] ^= 1 << at % 8
    assert _walk(bytes(spoiled), cuts, end)


@given(counts=COUNTS, cuts=st.lists(st.integers(0, 5000)), data=st.data())
def test_a_segment_that_is_too_short_is_found(
    counts: list[tuple[int, int]], cuts: list[int], data: st.DataObject
) -> None:
    log, end = _log(counts)
    kept = data.draw(st.integers(0, len(log) - 1))
    assert _walk(log[:kept], cuts, end)


def test_a_batch_too_many_is_found() -> None:
    log, end = _log([(2, 10), (3, 10)])
    longer, _ = _log([(2, 10), (3, 10), (1, 10)])
    assert _walk(longer, [], end)
    assert _walk(log + bytes(61), [], end)


def test_zeros_are_not_a_segment() -> None:
    """What a hole in a file is read as."""
    assert _walk(bytes(4096), [], BASE + 1)


def test_batches_of_another_epoch_are_found() -> None:
    log, end = _log([(1, 10)], epoch=3)
    assert _walk(log, [], end)
    assert _walk(log, [], end, epoch=3) == []


def test_a_walk_need_not_tell_anybody() -> None:
    walk = SegmentWalk(0, 1, 0)
    with pytest.raises(ObjectError):
        walk.end()
