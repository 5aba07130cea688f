"""Columns in C and in Python: the same arrays, or the same error at the same record."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.bulk.columns import NATIVE
from skylog.bulk.columns_reference import (
    ColumnsError,
    RecordsOfBatch,
    Within,
    build_columns_python,
)
from skylog.bulk.decode import EncodedBatch, decode
from skylog.bulk.schema import COLUMNS
from skylog.kernel.errors import KafkaError
from skylog.wire.batch import HEADER_BYTES, Batch, Compression
from skylog.wire.records import decode_records, encode_batch

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the columns in C are not built here")

NOW = 1_700_000_000_000
blobs = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3)
rows = st.lists(st.tuples(blobs, blobs, st.integers(-1, 2**41), headers), min_size=1, max_size=20)
batches = st.lists(rows, min_size=0, max_size=4)
damage = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4)
cuts = st.integers(-12, 12)
bases = st.sampled_from([0, NOW, -(2**63), 2**63 - 1])
wanted = st.sets(st.sampled_from(COLUMNS))
ranges = st.builds(
    Within,
    st.integers(0, 50),
    st.integers(0, 100),
    st.sampled_from([-(2**63), -1, 0, 2**40]),
    st.sampled_from([-1, 2**40, 2**63 - 1]),
)


def encoded(content: list, **fields: int) -> bytes:  # type: ignore[type-arg]
    return encode_batch(
        [(key, value) for key, value, _, _ in content],
        timestamp=0,
        timestamps=[timestamp for _, _, timestamp, _ in content],
        headers=[header for _, _, _, header in content],
        **fields,
    )


def damaged(data: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    out = bytearray(data)
    for at, value in changes:
        if out:
            out[at % len(out)] = value
    if cut > 0:
        out += bytes(range(cut))
    return bytes(out[: len(out) + min(cut, 0)])


def said(build, *arguments) -> object:  # type: ignore[no-untyped-def]
    try:
        count, arrays = build(*arguments)
    except ColumnsError as error:
        return error.error, error.batch, error.index
    for array in arrays.values():
        array.validate(full=True)
        assert len(array) == count
    return count, sorted(arrays), arrays


def assert_alike(records: list[RecordsOfBatch], within: Within, columns: set[str]) -> None:
    assert NATIVE is not None
    ours = said(NATIVE.build_columns, records, within, columns)
    assert ours == said(build_columns_python, records, within, columns)


@settings(max_examples=300)
@given(batches, ranges, wanted, st.booleans(), bases)
def test_valid_records(content, within, columns, appended, base) -> None:  # type: ignore[no-untyped-def]
    records, offset = [], 0
    for rows_of_one in content:
        body = encoded(rows_of_one)[HEADER_BYTES:]
        count = len(rows_of_one)
        records.append(RecordsOfBatch(body, offset, base, NOW, count, count - 1, appended))
        offset += count
    assert_alike(records, within, columns)


@settings(max_examples=500)
@given(rows, damage, cuts, st.integers(-2, 3), st.integers(-2, 3), bases)
def test_damaged_records(content, changes, cut, extra, beyond, base) -> None:  # type: ignore[no-untyped-def]
    body = damaged(encoded(content)[HEADER_BYTES:], changes, cut)
    sound = RecordsOfBatch(encoded(content)[HEADER_BYTES:], 0, 0, -1, len(content), 100, False)
    count = len(content) + extra
    last = len(content) - 1 + beyond
    assert_alike(
        [sound, RecordsOfBatch(body, 100, base, -1, count, last, False)], Within(), set(COLUMNS)
    )


@pytest.mark.parametrize("seed", range(4))
def test_noise(seed: int) -> None:
    """Bytes from a small alphabet: they look like records far more often than random ones."""
    rng = random.Random(seed)
    alphabet = [0, 0, 0, 1, 2, 2, 3, 4, 6, 12, 14, 16, 0x7F, 0x80, 0xFF]
    for _ in range(400):
        body = bytes(rng.choice(alphabet) for _ in range(rng.randrange(60)))
        one = RecordsOfBatch(body, 7, 0, NOW, rng.randrange(-1, 8), 5, rng.random() < 0.5)
        assert_alike([one], Within(), set(COLUMNS))


@settings(max_examples=150)
@given(rows, st.sampled_from(Compression), st.integers(0, 2**40))
def test_rows_are_what_the_wire_decodes(content, codec, base_offset) -> None:  # type: ignore[no-untyped-def]
    data = encoded(content, codec=codec, base_offset=base_offset)
    last = base_offset + len(content) - 1
    found = decode(
        [EncodedBatch(data, base_offset, last)],
        topic="t",
        partition=1,
        columns=["offset", "key", "value", "headers"],
        start_offset=0,
        end_offset=2**62,
    )
    assert [
        (row["offset"], row["key"], row["value"], row["headers"]) for row in found.to_pylist()
    ] == [
        (
            record.offset,
            record.key,
            record.value,
            [{"key": name, "value": value} for name, value in record.headers] or None,
        )
        for record in decode_records(Batch(data))
    ]


@settings(max_examples=300)
@given(rows, st.sampled_from(Compression), damage, cuts)
def test_damaged_batches_raise_nothing_else(content, codec, changes, cut) -> None:  # type: ignore[no-untyped-def]
    data = damaged(encoded(content, codec=codec), changes, cut)
    try:
        found = decode(
            [EncodedBatch(data, 0, len(content) - 1)],
            topic="t",
            partition=0,
            start_offset=0,
            end_offset=100,
        )
    except KafkaError as error:
        assert "topic t partition 0 offset 0" in str(error)
    else:
        found.validate(full=True)
