"""What a leader knows of a segment before it is assembled, and which batches it compares."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.tiered.assembly import SEGMENT_BYTES_MAX
from skylog.tiered.consolidation.grants import Asked
from skylog.tiered.consolidation.sampling import SAMPLES_MAX, Outline, Outlining, StoredBatch

ID = Uuid(b"0123456789abcdef")


def batch(base: int, count: int, size: int = 100, timestamp: int = 0) -> StoredBatch:
    return StoredBatch(base, base + count - 1, size, timestamp, base)


def outline(start: int, end: int, *pages: list[StoredBatch], seed: int = 0) -> Outline:
    outlining = Outlining(Asked(ID, start, end), random.Random(seed))
    for page in pages:
        outlining.add(page)
    return outlining.finish()


def test_sizes_add_up_over_pages() -> None:
    found = outline(0, 29, [batch(0, 10, 100, 5), batch(10, 10, 50, 9)], [batch(20, 10, 70, 7)])
    assert found[:3] == (0, 220, 9)
    assert [(one.position, one.end) for one in found.samples] == [(0, 100), (100, 150), (150, 220)]


def test_a_first_batch_that_begins_earlier_is_taken_whole() -> None:
    assert outline(5, 19, [batch(0, 10), batch(10, 10)]).start_offset == 0


@pytest.mark.parametrize(
    ("start", "end", "batches", "why"),
    [
        (0, 9, [], "without batches"),
        (0, 9, [batch(5, 5)], "no batch with offset 0"),
        (0, 19, [batch(0, 10), batch(11, 9)], "no batch at 10"),
        (0, 19, [batch(0, 10), batch(9, 11)], "no batch at 10"),
        (0, 14, [batch(0, 10), batch(10, 10)], "within the batch that ends at 19"),
        (0, 19, [batch(0, 10)], "within the batch that ends at 9"),
        (0, 1, [batch(0, 1, SEGMENT_BYTES_MAX), batch(1, 1, 1)], "more than"),
        (0, 2**31, [batch(0, 2**31), batch(2**31, 1)], "offsets"),
    ],
)
def test_what_is_no_segment_is_refused(
    start: int, end: int, batches: list[StoredBatch], why: str
) -> None:
    with pytest.raises(KafkaError, match=why) as caught:
        outline(start, end, batches)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@given(st.integers(1, 300), st.integers(0, 100))
def test_first_last_and_sixteen_others_are_compared(count: int, seed: int) -> None:
    found = outline(0, count - 1, [batch(at, 1, at + 1) for at in range(count)], seed=seed)
    offsets = [one.batch.base_offset for one in found.samples]
    assert offsets == sorted(set(offsets))
    assert {0, count - 1} <= set(offsets)
    assert min(count, SAMPLES_MAX - 2) <= len(offsets) <= min(count, SAMPLES_MAX)
    # Each at the sum of the sizes before it.
    assert [one.position for one in found.samples] == [at * (at + 1) // 2 for at in offsets]


def test_every_batch_may_be_drawn() -> None:
    batches = [batch(at, 1) for at in range(60)]
    drawn = {
        one.batch.base_offset
        for seed in range(60)
        for one in outline(0, 59, batches, seed=seed).samples
    }
    assert drawn == set(range(60))
