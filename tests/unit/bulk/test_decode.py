"""Decoding: which records become rows, which columns are built, sizes of chunks."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from skylog.bulk import columns
from skylog.bulk import decode as decoding
from skylog.bulk.columns_reference import build_columns_python
from skylog.bulk.decode import SCHEMA, EncodedBatch, Selection, decode, decode_chunks
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.wire.batch import Compression
from skylog.wire.records import encode_batch

EVERYTHING = {"topic": "t", "partition": 3, "start_offset": 0, "end_offset": 2**62}


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.fixture(params=["native", "python"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(decoding, "build_columns", build_columns_python)
    elif columns.NATIVE is None:
        pytest.skip("the columns in C are not built here")


def batch(base: int, count: int, *, codec: int = 0, **fields: int) -> EncodedBatch:
    """Records whose key, value and timestamp name their offset; stored offsets start at 0."""
    pairs = [(b"k%d" % offset, b"v%d" % offset) for offset in range(base, base + count)]
    times = list(range(1000 + base, 1000 + base + count))
    data = encode_batch(pairs, timestamp=0, timestamps=times, codec=codec)
    return EncodedBatch(data, base, base + count - 1, **fields)


@pytest.mark.parametrize("codec", Compression)
def test_every_column(codec: int) -> None:
    data = encode_batch(
        [(b"k", b"v"), (None, None), (b"", b"")],
        timestamp=0,
        timestamps=[1, 2, -1],
        headers=[[("a", b"x"), ("a", None)], [], [("ü", b"")]],
        codec=codec,
    )
    found = decode([EncodedBatch(data, 10, 12)], **EVERYTHING)
    assert found.schema == SCHEMA
    found.validate(full=True)
    fixed = {"topic": "t", "partition": 3, "timestampType": 0}
    assert found.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "offset": 10,
            "timestamp": at(1),
            "headers": [{"key": "a", "value": b"x"}, {"key": "a", "value": None}],
            **fixed,
        },
        {"key": None, "value": None, "offset": 11, "timestamp": at(2), "headers": None, **fixed},
        {
            "key": b"",
            "value": b"",
            "offset": 12,
            "timestamp": at(-1),
            "headers": [{"key": "ü", "value": b""}],
            **fixed,
        },
    ]


def test_only_the_columns_that_are_asked_for_in_their_order() -> None:
    found = decode([batch(0, 2)], **EVERYTHING, columns=["offset", "topic", "value"])
    assert found.schema.names == ["offset", "topic", "value"]
    assert found.to_pylist()[1] == {"offset": 1, "topic": "t", "value": b"v1"}


@pytest.mark.parametrize("names", [["key", "size"], [], ["key", "key"]])
def test_columns_that_cannot_be(names: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"columns has .*; allowed are some of key, value, topic"):
        decode([batch(0, 2)], **EVERYTHING, columns=names)


def test_batches_are_cut_at_the_offsets_asked_for() -> None:
    batches = [batch(0, 5), batch(5, 5, codec=Compression.ZSTD), batch(12, 5)]
    found = decode(batches, **{**EVERYTHING, "start_offset": 3, "end_offset": 14})
    assert found["offset"].to_pylist() == [3, 4, 5, 6, 7, 8, 9, 12, 13]
    assert found["key"].to_pylist()[-1] == b"k13"
    assert decode(batches, **{**EVERYTHING, "start_offset": 10, "end_offset": 12}).num_rows == 0


def test_batches_outside_the_range_are_not_decoded() -> None:
    broken = EncodedBatch(b"no batch", 5, 9)
    found = decode([batch(0, 5), broken], **{**EVERYTHING, "end_offset": 5})
    assert found.num_rows == 5


def test_times_are_inclusive_at_both_ends() -> None:
    found = decode([batch(0, 9)], **EVERYTHING, min_timestamp=1003, max_timestamp=1005)
    assert found["offset"].to_pylist() == [3, 4, 5]


def test_log_append_time_comes_from_the_coordinates() -> None:
    both = [batch(0, 1, log_append_timestamp=7_000), batch(1, 1)]
    found = decode(both, **EVERYTHING)
    assert found["timestamp"].to_pylist() == [at(7_000), at(1001)]
    assert found["timestampType"].to_pylist() == [1, 0]
    found = decode(both, **EVERYTHING, min_timestamp=7_000)
    assert found["offset"].to_pylist() == [0]


def test_times_beyond_arrow_become_the_nearest() -> None:
    latest, earliest = (encode_batch([(b"", b"")], timestamp=t) for t in (2**63 - 1, -(2**63)))
    found = decode([EncodedBatch(latest, 0, 0), EncodedBatch(earliest, 1, 1)], **EVERYTHING)
    assert found["timestamp"].cast(pa.int64()).to_pylist() == [
        (2**63 - 1) // 1000 * 1000,
        -((2**63 - 1) // 1000) * 1000,
    ]


def test_control_batches_are_no_rows_and_transactional_ones_are() -> None:
    marker = encode_batch([(b"\0\0\0\1", b"\0" * 6)], timestamp=5, control=True, transactional=True)
    data = encode_batch([(b"k", b"v")], timestamp=5, transactional=True, producer_id=1)
    found = decode([EncodedBatch(data, 0, 0), EncodedBatch(marker, 1, 1)], **EVERYTHING)
    assert found["offset"].to_pylist() == [0]


def test_gaps_that_compaction_left() -> None:
    data = bytearray(encode_batch([(b"k", b"v")], timestamp=5))
    struct.pack_into(">i", data, 23, 9)
    found = decode([EncodedBatch(bytes(data), 0, 9)], **EVERYTHING)
    assert found["offset"].to_pylist() == [0]
    empty = bytearray(encode_batch([], timestamp=5))
    struct.pack_into(">i", empty, 23, 9)
    assert decode([EncodedBatch(bytes(empty), 10, 19)], **EVERYTHING).num_rows == 0


def test_header_names_that_are_no_text_hide_nothing() -> None:
    data = encode_batch([(b"k", b"v")], timestamp=5, headers=[[("name", b"x")]])
    data = data.replace(b"name", b"n\xff\xfee")
    found = decode([EncodedBatch(data, 0, 0)], **EVERYTHING)
    assert found["headers"].to_pylist() == [[{"key": "n��e", "value": b"x"}]]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind: type) -> None:
    one = batch(0, 3)
    found = decode([EncodedBatch(kind(one.data), 0, 2)], **EVERYTHING)
    assert found.num_rows == 3


def test_nothing_gives_an_empty_batch_with_all_columns() -> None:
    found = decode([], **EVERYTHING)
    assert (found.num_rows, found.schema) == (0, SCHEMA)


def test_chunks_are_bounded_and_lose_nothing() -> None:
    batches = [batch(base, 10) for base in range(0, 100, 10)]
    size = len(batches[0].data)
    chunks = list(decode_chunks(batches, Selection("t", 3), chunk_bytes=3 * size))
    assert len(chunks) >= 3
    assert [row for chunk in chunks for row in chunk["offset"].to_pylist()] == list(range(100))
    assert max(chunk.nbytes for chunk in chunks) < 10 * 3 * size
    # A batch that is larger than a chunk is a separate chunk.
    assert len(list(decode_chunks(batches, Selection("t", 3), chunk_bytes=1))) == 10
    assert list(decode_chunks(batches, Selection("t", 3, start_offset=200))) == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "a batch of 0 bytes"),
        (batch(0, 3).data[:-1], "bytes of a batch of"),
        (batch(0, 3).data + b"x", "bytes of a batch of"),
        (batch(0, 4).data, "offsets up to 42 do not fit its header"),
        (batch(0, 3).data[:16] + b"\1" + batch(0, 3).data[17:], "message format 1"),
        (batch(0, 3).data[:57] + b"\0\0\0\2" + batch(0, 3).data[61:], "record 2: trailing bytes"),
        (batch(0, 3).data[:57] + b"\0\0\0\4" + batch(0, 3).data[61:], "record 3: early end"),
        (batch(0, 3).data[:22] + b"\4" + batch(0, 3).data[23:], "no zstd frame"),
        (batch(0, 3).data[:22] + b"\7" + batch(0, 3).data[23:], "unknown codec 7"),
    ],
)
def test_corrupt_data_is_told_with_its_place(data: bytes, why: str) -> None:
    broken = EncodedBatch(data, 40, 42, source="wal/ab/cd")
    with pytest.raises(KafkaError) as caught:
        decode([batch(0, 3), broken], **EVERYTHING)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert "topic t partition 3 offset 40 in wal/ab/cd: " in str(caught.value)
    assert why in str(caught.value)


def test_a_column_above_two_gibibytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if decoding.build_columns is build_columns_python:
        pytest.skip("Arrow itself refuses in Python")
    monkeypatch.setattr(columns, "COLUMN_BYTES_MAX", 5)
    with pytest.raises(ValueError, match="a column of 6 bytes; allowed are 5"):
        decode([batch(0, 3)], **EVERYTHING)
