"""The walker in C and in Python: the same results, on valid and damaged records."""

from __future__ import annotations

import pytest

from skylog.wire import walker_reference
from skylog.wire.records import varint
from skylog.wire.walker_reference import RecordsError, WalkError
from tests.unit.wire.record_bodies import WALKERS, Walker, body, record

BASE = 1000


@pytest.fixture(params=WALKERS)
def any_walker(request: pytest.FixtureRequest) -> Walker:
    return WALKERS[request.param]


def test_a_sound_walk(any_walker: Walker) -> None:
    data = body([(0, b"a"), (7, None), (7, b""), (-3, b"b")])
    seen = any_walker.walk(data, 4, BASE)
    assert (seen.error, seen.error_index) == (WalkError.SOUND, 0)
    assert (seen.min_timestamp, seen.max_timestamp) == (BASE - 3, BASE + 7)
    assert seen.max_timestamp_delta == 1  # the first of those that have it
    assert seen.keyless == 1


def test_timestamps_outside_of_a_range(any_walker: Walker) -> None:
    data = body([(0, b"a"), (1, b"a"), (2, b"a"), (-BASE - 1, b"a")])
    assert any_walker.walk(data, 4, BASE, BASE, BASE + 2).outside == 0  # −1 means no timestamp
    assert any_walker.walk(data, 4, BASE, BASE + 1, BASE + 1).outside == 2


def test_timestamps_wrap_as_in_java(any_walker: Walker) -> None:
    data = body([(2**63 - 1, b"a")])
    assert any_walker.walk(data, 1, 2).max_timestamp == -(2**63) + 1


@pytest.mark.parametrize(
    ("data", "count", "error", "index"),
    [
        (b"", 1, WalkError.EARLY_END, 0),
        (body([(0, b"a")]), 2, WalkError.EARLY_END, 1),
        (body([(0, b"a"), (0, b"a")]), 1, WalkError.TRAILING_BYTES, 1),
        (body([(0, b"a")]) + b"\0", 1, WalkError.TRAILING_BYTES, 1),
        (body([(0, b"a")]), 0, WalkError.TRAILING_BYTES, 0),
        (body([(0, b"a")]), -1, WalkError.TRAILING_BYTES, 0),
        (b"\xff" * 6, 1, WalkError.BAD_SIZE, 0),
        (b"\xff", 1, WalkError.BAD_SIZE, 0),
        (varint(-1) + bytes(9), 1, WalkError.BAD_SIZE, 0),
        (varint(99) + bytes(9), 1, WalkError.BAD_SIZE, 0),
        (varint(0), 1, WalkError.BAD_RECORD, 0),
        (record(0, 0, b"a", headers=b"\x03"), 1, WalkError.BAD_RECORD, 0),
        (record(0, 0, b"a", headers=b"\x40"), 1, WalkError.BAD_RECORD, 0),
        (record(0, 0, b"a", headers=b"\0\0"), 1, WalkError.BAD_RECORD, 0),
        (record(0, 0, b"a", headers=b"\x02\x01\x01"), 1, WalkError.BAD_RECORD, 0),
        (record(0, 1, b"a"), 1, WalkError.BAD_OFFSET, 0),
        (record(0, 0, b"a") + record(0, 0, b"a"), 2, WalkError.BAD_OFFSET, 1),
        (record(0, 0, b"a") + record(0, 2, b"a"), 2, WalkError.BAD_OFFSET, 1),
    ],
)
def test_broken_records(
    any_walker: Walker, data: bytes, count: int, error: WalkError, index: int
) -> None:
    seen = any_walker.walk(data, count, BASE)
    assert (WalkError(seen.error), seen.error_index) == (error, index)


def test_gaps_are_sound_in_a_compacted_log(any_walker: Walker) -> None:
    gaps = record(0, 3, b"a") + record(0, 9, b"b")
    assert any_walker.walk(gaps, 2, BASE, dense=False).error == WalkError.SOUND
    assert [place.offset_delta for place in any_walker.locate(gaps, 2, BASE)] == [3, 9]
    back = record(0, 9, b"a") + record(0, 3, b"b")
    with pytest.raises(RecordsError, match="record 1: bad offset"):
        any_walker.locate(back, 2, BASE)


def test_locate_says_where_the_parts_lie(any_walker: Walker) -> None:
    data = record(5, 0, b"key", b"value", b"\x02" + b"\x02n" + b"\x01")
    (place,) = any_walker.locate(data, 1, BASE)
    assert place.timestamp == BASE + 5
    assert data[place.key_at :][: place.key_size] == b"key"
    assert data[place.value_at :][: place.value_size] == b"value"
    assert place.header_count == 1
    assert data[place.headers_at :].startswith(b"\x02n")


def test_locate_makes_no_room_for_records_that_cannot_be(any_walker: Walker) -> None:
    with pytest.raises(RecordsError, match="record 1: early end"):
        any_walker.locate(record(0, 0, b"a"), 2**31 - 1, BASE)


def test_faults_are_listed_up_to_a_limit(any_walker: Walker) -> None:
    data = body([(0, b"a"), (9, None), (9, b"a"), (0, None)])
    within = (BASE, BASE + 5)
    faults = any_walker.find_faults(data, 4, BASE, within, keyed=True, faults_max=9)
    assert faults == [(BASE + 9, 1, True), (BASE + 9, 2, False), (BASE, 3, True)]
    faults = any_walker.find_faults(data, 4, BASE, within, keyed=False, faults_max=9)
    assert faults == [(BASE + 9, 1, False), (BASE + 9, 2, False)]
    assert len(any_walker.find_faults(data, 4, BASE, within, keyed=True, faults_max=2)) == 2
    assert any_walker.find_faults(b"\xff", 4, BASE, within, keyed=True, faults_max=2) == []


def test_find_timestamp(any_walker: Walker) -> None:
    data = body([(0, b"a"), (5, b"b"), (3, b"c"), (5, b"d")])
    assert any_walker.find_timestamp(data, 4, BASE, BASE + 3) == (1, BASE + 5)
    assert any_walker.find_timestamp(data, 4, BASE, BASE + 3, 2) == (2, BASE + 3)
    assert any_walker.find_timestamp(data, 4, BASE, BASE + 6) is None
    with pytest.raises(RecordsError):
        any_walker.find_timestamp(data[:-1], 4, BASE, BASE + 6)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: memoryview(bytearray(b))])
def test_any_buffer_will_do(any_walker: Walker, kind: type) -> None:
    data = body([(0, b"a"), (1, b"b")])
    assert any_walker.walk(kind(data), 2, BASE).error == WalkError.SOUND
    assert any_walker.walk(kind(b""), 0, BASE).error == WalkError.SOUND


def test_a_long_body_releases_the_lock_and_says_the_same(any_walker: Walker) -> None:
    data = body([(index, b"key") for index in range(20_000)])
    assert len(data) > 64 * 1024
    seen = any_walker.walk(bytearray(data), 20_000, BASE)
    assert seen == walker_reference.walk_python(data, 20_000, BASE)
    assert seen.max_timestamp == BASE + 19_999
