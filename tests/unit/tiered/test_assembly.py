"""An assembled segment has the same files as an appended one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import KafkaError
from skylog.log.checkpoints import decode_snapshot
from skylog.log.config import LogConfig
from skylog.tiered.assembly import Segment, SegmentAssembler, snapshots
from skylog.wire.batch import Batch, patch_offset
from tests.unit.log.support import NOW, batch, open_log, read_batches

BATCHES = st.lists(
    st.tuples(
        st.integers(1, 6),  # records
        st.integers(0, 3000),  # bytes of each
        st.integers(-50, 50),  # timestamp
        st.sampled_from([None, 7, 8]),  # producer
    ),
    min_size=1,
    max_size=40,
)


def _batches(plan: list[tuple[int, int, int, int | None]]) -> list[Batch]:
    sequences: dict[int, int] = {}
    made = []
    for count, size, shift, producer in plan:
        numbers = None
        if producer is not None:
            first = sequences.get(producer, 0)
            sequences[producer] = first + count
            numbers = (producer, 0, first)
        made.append(batch(*[b"x" * size] * count, timestamp=NOW + shift, producer=numbers))
    return made


def _assemble(batches: list[Batch]) -> Segment:
    assembler = SegmentAssembler(batches[0].base_offset)
    for one in batches:
        assembler.add(one.buffer)
    return assembler.finish()


@given(plan=BATCHES)
def test_the_files_are_those_of_the_log(
    plan: list[tuple[int, int, int, int | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = open_log(folder, LogConfig())
    for one in _batches(plan):
        log.appender.append([one], 0, NOW)
    log.high_watermark = log.log_end_offset
    read = read_batches(log)
    log.close()

    segment = _assemble(read)
    (snapshot,) = snapshots([segment])
    beside = segment.files(snapshot)
    for suffix in (".index", ".timeindex"):
        name = f"{0:020d}{suffix}"
        assert beside[name] == (folder / name).read_bytes(), name
    assert b"".join(one.buffer for one in read) == (folder / segment.log_name).read_bytes()
    assert segment.last_offset == read[-1].last_offset
    kept = {entry.producer_id: entry.last_sequence for entry in decode_snapshot(snapshot)}
    expected = {one.producer_id: one.last_sequence for one in read if one.producer_id >= 0}
    assert kept == expected


def _at(offset: int, one: Batch) -> bytes:
    data = bytearray(one.buffer)
    patch_offset(data, offset, 0)
    return bytes(data)


def test_snapshots_go_on_from_segment_to_segment() -> None:
    first, second = SegmentAssembler(0), SegmentAssembler(2)
    first.add(_at(0, batch(b"a", producer=(7, 0, 0))))
    first.add(_at(1, batch(b"b", producer=(8, 3, 0))))
    second.add(_at(2, batch(b"c", producer=(7, 0, 1))))
    one, two = snapshots([first.finish(), second.finish()])
    assert snapshots([second.finish()], decode_snapshot(one)) == [two]
    assert {(e.producer_id, e.last_offset) for e in decode_snapshot(one)} == {(7, 0), (8, 1)}
    assert {(e.producer_id, e.last_offset) for e in decode_snapshot(two)} == {(7, 2), (8, 1)}


def test_what_does_not_follow_is_refused() -> None:
    assembler = SegmentAssembler(5)
    with pytest.raises(KafkaError, match="without batches"):
        assembler.finish()
    assembler.add(_at(5, batch(b"a", b"b")))
    for offset in (5, 6):
        with pytest.raises(KafkaError, match="after 6"):
            assembler.add(_at(offset, batch(b"c")))
    with pytest.raises(KafkaError, match="in the segment of 5"):
        assembler.add(_at(2**31 + 5, batch(b"c")))
    assert assembler.finish().last_offset == 6
