"""The C map and filter of compaction against those in Python, on valid and damaged input."""

from __future__ import annotations

import random
from array import array

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import KafkaError
from skylog.log.offset_map import NATIVE, SLOT_BYTES, NativeOffsetMap, Reason, Rule
from skylog.log.offset_map_reference import PythonOffsetMap
from skylog.wire.batch import Batch, split_batches
from skylog.wire.records import CONTROL_FLAG, decode_records, encode_batch

SEED = bytes(range(16))
NOW = 1_700_000_000_000
MANY = 1 << 20

needs_native = pytest.mark.skipif(NATIVE is None, reason="C is not built")


def native(bytes_max: int = MANY, load: float = 0.9, records_max: int = 10_000) -> NativeOffsetMap:
    assert NATIVE is not None
    return NativeOffsetMap(bytes_max, load, records_max, SEED, NATIVE)


def python() -> PythonOffsetMap:
    return PythonOffsetMap(MANY, 0.9, 10_000, SEED)


keys = st.one_of(st.none(), st.sampled_from([b"", b"a", b"b", b"a" * 7, b"a" * 8, b"a" * 17]))
values = st.one_of(st.none(), st.binary(max_size=20))
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=8)
timestamps = st.integers(-(2**62), 2**62) | st.integers(NOW - 10, NOW + 10)


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Plain batches, one after the other, some with a horizon."""
    found = []
    offset = draw(st.integers(0, 2**40))
    for records in draw(st.lists(pairs, min_size=1, max_size=6)):
        times = draw(st.lists(timestamps, min_size=len(records), max_size=len(records)))
        data = bytearray(
            encode_batch(
                records,
                timestamp=NOW,
                timestamps=times,
                base_offset=offset,
                producer_id=draw(st.integers(-1, 3)),
            )
        )
        if draw(st.booleans()):
            data[22] |= 0x40
        batch = Batch(memoryview(data))
        # The horizon was set after the checksum.
        crc = crc32c(bytes(data[21:]))
        data[17:21] = crc.to_bytes(4, "big")
        found.append(Batch(batch.buffer))
        offset = batch.next_offset + draw(st.integers(0, 5))
    return found


@needs_native
@settings(max_examples=300, deadline=None)
@given(batches(), st.data())
def test_c_filters_as_python_does(found: list[Batch], data: st.DataObject) -> None:
    ends = [batch.last_offset for batch in found]
    latest = data.draw(st.integers(found[0].base_offset, ends[-1]))
    start = data.draw(st.integers(found[0].base_offset, latest))
    listed = sorted(data.draw(st.sets(st.sampled_from(ends))))
    rule = Rule(latest, data.draw(st.integers(NOW - 20, NOW + 20)), NOW + 1000)
    fast, slow = native(), python()
    joined = bytearray(b"".join(batch.buffer for batch in found))
    step = fast.note_batches(joined, start)
    assert (step.consumed, step.reason) == (len(joined), Reason.NEEDS_BYTES)
    assert step.latest_offset == ends[-1]
    for batch in found:
        assert slow.note(batch.records(), batch.record_count, batch.base_offset, start)
    assert len(fast) == len(slow)

    result, out, rows = fast.filter_batches(rule, array("q", listed), joined)
    assert (result.consumed, result.reason) == (len(joined), Reason.NEEDS_BYTES)
    left = {batch.base_offset: batch for batch in split_batches(bytearray(out))}
    assert len(rows) == len(left)
    for (last, latest_ms, size, count), batch in zip(rows, left.values(), strict=True):
        assert (last, latest_ms, size, count) == (
            batch.last_offset,
            batch.max_timestamp,
            batch.size,
            batch.record_count,
        )
    for batch in found:
        expected = slow.filter(rule, batch, batch.records(), keep_all=False)
        again = fast.filter(rule, batch, batch.records(), keep_all=False)
        assert again == expected
        kept = left.get(batch.base_offset)
        assert (kept is not None) == (expected.kept > 0 or batch.last_offset in listed)
        if kept is not None:
            check_kept(batch, kept, expected.kept, rule)


def check_kept(batch: Batch, kept: Batch, count: int, rule: Rule) -> None:
    assert kept.crc_ok()
    assert kept.record_count == count
    for name in ("last_offset", "producer_id", "last_sequence", "leader_epoch"):
        assert getattr(kept, name) == getattr(batch, name)
    original = {record.offset: record for record in decode_records(batch)}
    for record in decode_records(kept):
        assert record == original[record.offset]
        if record.value is None and record.offset <= rule.latest_offset:
            horizon = kept.delete_horizon_ms
            assert horizon is not None
            # An existing horizon stays; a record that is kept beyond it is not due yet.
            assert horizon == (rule.new_horizon if batch.delete_horizon_ms is None else horizon)
            assert horizon > rule.now_ms


@needs_native
@settings(max_examples=300, deadline=None)
@given(batches(), st.data())
def test_hostile_bytes_are_refused_or_read_within_bounds(
    found: list[Batch], data: st.DataObject
) -> None:
    joined = bytearray(b"".join(batch.buffer for batch in found))
    for _ in range(data.draw(st.integers(1, 4))):
        joined[data.draw(st.integers(0, len(joined) - 1))] = data.draw(st.integers(0, 255))
    cut = joined[: data.draw(st.integers(0, len(joined)))]
    offsets = native()
    noted = offsets.note_batches(cut, 0)
    filtered, out, rows = offsets.filter_batches(Rule(2**62, NOW, NOW), array("q"), cut)
    assert 0 <= noted.consumed <= len(cut)
    assert 0 <= filtered.consumed <= len(cut)
    assert len(out) == filtered.written == sum(size for _, _, size, _ in rows)
    records = data.draw(st.binary(max_size=100))
    batch = found[0]
    batch.record_count = data.draw(st.integers(0, 1000))
    for one in (offsets, python()):
        try:
            one.filter(Rule(2**62, NOW, NOW), batch, records, keep_all=False)
            one.note(records, batch.record_count, 0, 0)
        except KafkaError:
            continue


@pytest.mark.parametrize("load", [0.3, 0.9, 1.0, 7.0])
@needs_native
def test_a_map_takes_as_many_keys_as_its_memory_allows(load: float) -> None:
    offsets = native(1000 * SLOT_BYTES, load)
    limit = min(int(1000 * load), 999)
    for number in range(limit):
        assert offsets.note(body(b"%d" % number), 1, number, 0)
    assert not offsets.note(body(b"one more"), 1, 5000, 0)
    assert len(offsets) == limit
    # Known keys always have room.
    assert offsets.note(body(b"0"), 1, 6000, 0)


def body(key: bytes) -> bytes:
    return encode_batch([(key, b"v")], timestamp=NOW)[61:]


@needs_native
def test_offsets_beyond_the_last_one_are_harmless() -> None:
    """Only a broken log has them."""
    last = 2**63 - 1
    data = encode_batch([(b"a", b"v"), (b"b", None)], timestamp=NOW, base_offset=last)
    offsets = native()
    assert offsets.note_batches(data, 0).consumed == len(data)
    step, out, rows = offsets.filter_batches(Rule(last, NOW, NOW), array("q"), data)
    assert step.consumed == len(data)
    assert len(out) == sum(size for _, _, size, _ in rows)


@needs_native
def test_a_map_for_few_records_is_small() -> None:
    offsets = native(1 << 30, 0.9, records_max=10)
    for number in range(10):
        assert offsets.note(body(b"%d" % number), 1, number, 0)
    assert len(offsets._memory) < 20 * SLOT_BYTES


@needs_native
def test_many_keys_do_not_meet() -> None:
    rng = random.Random(5)
    offsets = native(40_000 * SLOT_BYTES, 1.0, 100_000)
    known = {rng.randbytes(rng.randrange(1, 40)): number for number in range(30_000)}
    for key, number in known.items():
        assert offsets.note(body(key), 1, number, 0)
    assert len(offsets) == len(known)
    for key, number in list(known.items())[::100]:
        data = encode_batch([(key, b"v")], timestamp=NOW, base_offset=number)
        assert offsets.filter(Rule(10**6, 0, 0), Batch(data), data[61:], keep_all=False).kept
        data = encode_batch([(key, b"v")], timestamp=NOW, base_offset=number - 1)
        assert not offsets.filter(Rule(10**6, 0, 0), Batch(data), data[61:], keep_all=False).kept


@needs_native
@pytest.mark.parametrize("flag", [1, 2, 3, 4, 0x10, CONTROL_FLAG])
def test_what_c_does_not_do_is_left_to_the_caller(flag: int) -> None:
    plain = encode_batch([(b"k", b"v")], timestamp=NOW)
    other = bytearray(plain)
    other[22] |= flag
    data = bytearray(plain + other)
    offsets = native()
    assert offsets.note_batches(data, 0)[1:3] == (len(plain), Reason.NEEDS_CALLER)
    step, out, _ = offsets.filter_batches(Rule(10, 0, 0), array("q"), data)
    assert (step.consumed, step.reason) == (len(plain), Reason.NEEDS_CALLER)
    assert out == plain
