"""Single records in and out of batches."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import Batch, Compression
from skylog.wire.records import Record, decode_records, encode_batch, find_record, varint
from skylog.wire.walker_reference import read_varint
from tests.golden.records.cases import patched
from tests.unit.wire.record_bodies import record

PAIRS = [(b"k", b"v"), (None, b"x"), (b"", None)]


def test_varints_are_kafkas() -> None:
    known = {0: "00", -1: "01", 1: "02", 63: "7e", -64: "7f", 64: "8001", 2**31 - 1: "feffffff0f"}
    assert {number: varint(number).hex() for number in known} == known
    for number in (-(2**63), 2**63 - 1):
        data = varint(number)
        assert read_varint(data, 0, len(data), 10) == (number, 10)


@pytest.mark.parametrize("codec", Compression)
def test_batches_survive_a_round_trip(codec: int) -> None:
    data = encode_batch(PAIRS, timestamp=50, base_offset=7, codec=codec, leader_epoch=3)
    batch = Batch(data)
    assert batch.size == len(data)
    assert batch.crc_ok()
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (7, 9, 3)
    assert (batch.base_timestamp, batch.max_timestamp) == (50, 50)
    assert decode_records(batch) == [
        Record(7, 50, b"k", b"v"),
        Record(8, 50, None, b"x"),
        Record(9, 50, b"", None),
    ]


def test_timestamps_and_headers_are_per_record() -> None:
    headers = [[("a", b"1")], [], [("a", None), ("ü", b"")]]
    data = encode_batch(PAIRS, timestamp=0, timestamps=[5, 9, 2], headers=headers)
    batch = Batch(data)
    assert (batch.base_timestamp, batch.max_timestamp) == (5, 9)
    records = decode_records(batch)
    assert [r.timestamp for r in records] == [5, 9, 2]
    assert [list(r.headers) for r in records] == headers


def test_flags_and_producer() -> None:
    batch = Batch(
        encode_batch(
            PAIRS,
            timestamp=1,
            control=True,
            transactional=True,
            producer_id=8,
            producer_epoch=2,
            base_sequence=2**31 - 2,
        )
    )
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch) == (8, 2)
    assert batch.last_sequence == 0


def test_an_empty_batch() -> None:
    batch = Batch(encode_batch([], timestamp=1))
    assert batch.record_count == 0
    assert decode_records(batch) == []


def test_records_of_log_append_time_have_the_time_of_their_batch() -> None:
    stamped = Batch(patched(patched(encode_batch(PAIRS, timestamp=1), 21, "h", 8), 35, "q", 99))
    assert [r.timestamp for r in decode_records(stamped)] == [99, 99, 99]


def test_a_header_name_that_is_no_text_hides_nothing() -> None:
    like = encode_batch([(b"", b"")], timestamp=1)
    data = like[:61] + record(0, 0, b"k", headers=b"\x02\x02\xff\x01")
    assert decode_records(Batch(data))[0].headers == (("\N{REPLACEMENT CHARACTER}", None),)


def test_records_that_are_not_what_the_batch_declares() -> None:
    good = encode_batch(PAIRS, timestamp=1, codec=1)
    for bad in (patched(good, 57, "i", 4), patched(good, 57, "i", 2), patched(good, 57, "i", -1)):
        with pytest.raises(KafkaError) as error:
            decode_records(Batch(bad))
        assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_decoding_keeps_to_the_cap() -> None:
    batch = Batch(encode_batch([(None, bytes(10_000))], timestamp=1, codec=4))
    assert len(decode_records(batch, 10_100)) == 1
    with pytest.raises(KafkaError) as error:
        decode_records(batch, 10_000)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", Compression)
def test_find_record_by_time(codec: int) -> None:
    batch = Batch(
        encode_batch(PAIRS, timestamp=0, timestamps=[10, 30, 20], base_offset=5, codec=codec)
    )
    assert find_record(batch, 0) == (5, 10)
    assert find_record(batch, 11) == (6, 30)
    assert find_record(batch, 11, 7) == (7, 20)
    assert find_record(batch, 25, 7) is None
    assert find_record(batch, 31) is None
    assert find_record(batch, 0, 8) is None


def test_find_record_in_log_append_time_and_in_gaps() -> None:
    like = encode_batch([(b"", b"")] * 2, timestamp=1, base_offset=100)
    gaps = like[:61] + record(0, 3, b"k") + record(0, 9, b"k")
    stamped = Batch(patched(patched(patched(gaps, 21, "h", 8), 35, "q", 50), 23, "i", 9))
    assert find_record(stamped, 40) == (103, 50)
    assert find_record(stamped, 40, 104) == (109, 50)
    assert find_record(stamped, 51) is None


def test_find_record_in_broken_records() -> None:
    good = encode_batch(PAIRS, timestamp=0, timestamps=[1, 2, 3])
    batch = Batch(good[:-9] + b"\xff" * 9)
    assert find_record(batch, 1) == (0, 1)
    with pytest.raises(KafkaError) as error:
        find_record(batch, 3)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
