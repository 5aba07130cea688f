"""Batches are found in records however they are cut into parts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import KafkaError
from skylog.tiered.consolidation.parts import Run, batches_in
from skylog.wire.batch import HEADER_BYTES, patch_offset, split_batches
from tests.unit.log.support import batch

COUNTS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 200)), min_size=1, max_size=8)
CUTS = st.lists(st.integers(0, 5000), max_size=30)


def _records(counts: list[tuple[int, int]]) -> bytes:
    offset, parts = 0, []
    for count, size in counts:
        one = bytearray(batch(*[b"x" * size] * count).buffer)
        patch_offset(one, offset, 0)
        parts.append(bytes(one))
        offset += count
    return b"".join(parts)


def _parts(records: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(records) + 1) for cut in cuts), len(records)]
    return [records[start:stop] for start, stop in pairwise(edges)]


@given(counts=COUNTS, cuts=CUTS)
def test_whatever_the_parts_the_batches_are_the_same(
    counts: list[tuple[int, int]], cuts: list[int]
) -> None:
    records, run = _records(counts), Run()
    for one, spans in batches_in(_parts(records, cuts)):
        assert sum(span.end - span.start for span in spans) == one.size
        run.add(one, spans)
    wanted = list(split_batches(records))
    assert [one.base_offset for one in run.batches] == [one.base_offset for one in wanted]
    assert [bytes(one.buffer[:HEADER_BYTES]) for one in run.batches] == [
        bytes(one.buffer[:HEADER_BYTES]) for one in wanted
    ]
    assert b"".join(run.buffers) == records
    assert run.size == len(records)


def test_batches_of_one_part_are_written_as_one_buffer() -> None:
    run = Run()
    for one, spans in batches_in([_records([(1, 10)] * 5), _records([(1, 10)] * 2)]):
        run.add(one, spans)
    assert len(run.buffers) == 2


@given(counts=COUNTS, cuts=CUTS, data=st.data())
def test_records_that_end_within_a_batch_are_refused(
    counts: list[tuple[int, int]], cuts: list[int], data: st.DataObject
) -> None:
    records = _records(counts)
    ends = {0}
    for one in split_batches(records):
        ends.add(max(ends) + one.size)
    kept = data.draw(st.integers(1, len(records) - 1).filter(lambda size: size not in ends))
    with pytest.raises(KafkaError):
        list(batches_in(_parts(records[:kept], cuts)))


@pytest.mark.parametrize("junk", [bytes(200), b"\xff" * 200, b"\x7f" * 200])
def test_junk_is_refused(junk: bytes) -> None:
    for cuts in ([], [1], [16], [61, 70]):
        with pytest.raises(KafkaError):
            list(batches_in(_parts(junk, cuts)))
