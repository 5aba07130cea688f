"""Records of any shape survive every codec, and invalid bytes raise nothing but KafkaError."""

from __future__ import annotations

import contextlib
import random
import struct
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, Batch, Compression
from skylog.wire.compression import compress, decompress, output_bytes_bound
from skylog.wire.records import Record, decode_records, encode_batch, find_record
from skylog.wire.topic_rules import TARGET_CODECS, TopicRules
from skylog.wire.validation import is_long, validate
from skylog.wire.walker import NATIVE
from skylog.wire.walker_reference import RecordsError
from tests.unit.wire.record_bodies import PYTHON, WALKERS, Walker

CAP = 1 << 20
NOW = 1_700_000_000_000

codecs = st.sampled_from(Compression)
blobs = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3)
rows = st.lists(st.tuples(blobs, blobs, st.integers(-1, 2**41), headers), min_size=1, max_size=20)
rules = st.builds(
    TopicRules,
    compression_type=st.sampled_from(["producer", *TARGET_CODECS]),
    timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    timestamp_before_max_ms=st.sampled_from([1000, 2**63 - 1]),
    timestamp_after_max_ms=st.sampled_from([1000, 2**63 - 1]),
    compacted=st.booleans(),
    full=st.booleans(),
    message_bytes_max=st.sampled_from([200, 1_048_588]),
)
# Damage: overwrite some bytes, and perhaps truncate or extend the whole.
damage = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4)
cuts = st.integers(-12, 12)


def batch_of(content: list[tuple], codec: int, **fields: int) -> bytes:  # type: ignore[type-arg]
    return encode_batch(
        [(key, value) for key, value, _, _ in content],
        timestamp=0,
        timestamps=[timestamp for _, _, timestamp, _ in content],
        headers=[header for _, _, _, header in content],
        codec=codec,
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


@settings(deadline=None, max_examples=150)
@given(rows, codecs, st.integers(0, 2**40))
def test_records_survive_every_codec(content: list, codec: int, base_offset: int) -> None:  # type: ignore[type-arg]
    batch = Batch(batch_of(content, codec, base_offset=base_offset))
    assert batch.crc_ok()
    assert decode_records(batch) == [
        Record(base_offset + index, timestamp, key, value, tuple(header))
        for index, (key, value, timestamp, header) in enumerate(content)
    ]
    latest = max(row[2] for row in content)
    first = next(index for index, row in enumerate(content) if row[2] == latest)
    assert find_record(batch, latest) == (base_offset + first, latest)


@settings(deadline=None, max_examples=150)
@given(rows, codecs, rules)
def test_validation_keeps_what_it_accepts(content: list, codec: int, topic: TopicRules) -> None:  # type: ignore[type-arg]
    data = batch_of(content, codec)
    before = decode_records(Batch(data))
    try:
        checked = validate(bytearray(data), topic, NOW, 9)
    except KafkaError:
        return
    after = decode_records(checked.batch)
    if checked.log_append_time >= 0:
        assert {record.timestamp for record in after} == {NOW}
        after = [a._replace(timestamp=b.timestamp) for a, b in zip(after, before, strict=True)]
    assert after == before
    assert checked.batch.crc_ok()
    assert checked.batch.size <= topic.message_bytes_max


@settings(deadline=None, max_examples=300)
@given(codecs, st.binary(max_size=2000), damage, cuts)
def test_damaged_streams(codec: int, data: bytes, changes: list, cut: int) -> None:  # type: ignore[type-arg]
    stream = damaged(compress(codec, data), changes, cut)
    bound = output_bytes_bound(codec, stream)
    try:
        output = decompress(codec, stream, CAP)
    except KafkaError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
    else:
        assert len(output) <= min(bound, CAP)


@settings(deadline=None, max_examples=300)
@given(st.integers(-1, 8), st.binary(max_size=300))
def test_bytes_that_are_not_a_stream(codec: int, data: bytes) -> None:
    output_bytes_bound(codec, data)
    try:
        assert len(decompress(codec, data, 1000)) <= 1000
    except KafkaError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@settings(deadline=None, max_examples=300)
@given(rows, codecs, rules, damage, cuts, st.booleans(), st.integers(3, 13))
def test_damaged_batches(  # type: ignore[no-untyped-def]
    content, codec, topic, changes, cut, crc_holds, version
) -> None:
    data = bytearray(damaged(batch_of(content, codec), changes, cut))
    if crc_holds and len(data) >= HEADER_BYTES:
        struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    is_long(data, topic)
    with contextlib.suppress(KafkaError):
        validate(data, topic, NOW, version)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200), rules, st.integers(3, 13))
def test_bytes_that_are_not_a_batch(data: bytes, topic: TopicRules, version: int) -> None:
    is_long(data, topic)
    with pytest.raises(KafkaError):
        validate(data, topic, NOW, version)


def everything(walker: Walker, data: bytes, count: int, base: int, target: int) -> list[object]:
    """Everything that a walker returns for a body, errors included."""
    within = (target - 1000, target + 1000)
    said: list[object] = [
        walker.walk(data, count, base, *within, dense=True),
        walker.walk(data, count, base, *within, dense=False),
        walker.find_faults(data, count, base, within, keyed=True, faults_max=3),
        walker.find_faults(data, count, base, within, keyed=False, faults_max=100),
    ]
    for call in (
        lambda: walker.locate(data, count, base),
        lambda: walker.find_timestamp(data, count, base, target, 1),
    ):
        try:
            said.append(call())
        except RecordsError as error:
            said.append((error.error, error.index))
    return said


@pytest.mark.skipif(NATIVE is None, reason="the walker in C is not built here")
@settings(deadline=None, max_examples=400)
@given(rows, damage, cuts, st.integers(-2, 3), st.sampled_from([0, NOW, -(2**63), 2**63 - 1]))
def test_c_and_python_walk_alike(content, changes, cut, extra, base) -> None:  # type: ignore[no-untyped-def]
    body = damaged(batch_of(content, 0)[HEADER_BYTES:], changes, cut)
    count = len(content) + extra
    for target in (NOW, content[0][2]):
        assert everything(WALKERS["native"], body, count, base, target) == everything(
            PYTHON, body, count, base, target
        )


@pytest.mark.skipif(NATIVE is None, reason="the walker in C is not built here")
@pytest.mark.parametrize("seed", range(4))
def test_c_and_python_walk_alike_over_noise(seed: int) -> None:
    """Bytes from a small alphabet: they look like records far more often than random ones."""
    rng = random.Random(seed)
    alphabet = [0, 0, 0, 1, 2, 2, 3, 4, 6, 12, 14, 16, 0x7F, 0x80, 0xFF]
    for _ in range(400):
        body = bytes(rng.choice(alphabet) for _ in range(rng.randrange(60)))
        count = rng.randrange(-1, 8)
        assert everything(WALKERS["native"], body, count, 0, 1) == everything(
            PYTHON, body, count, 0, 1
        )


def outcome(data: Any, topic: TopicRules) -> object:
    """The result for a batch: its bytes, or the error."""
    try:
        checked = validate(data, topic, NOW, 9)
    except KafkaError as error:
        return type(error), error.code, error.message, getattr(error, "record_errors", None)
    return bytes(checked.batch.buffer), checked.log_append_time, checked.batch.crc


def resealed(data: bytes, changes: list[tuple[int, int]], cut: int) -> bytearray:
    """Damaged, but with a valid checksum and length."""
    out = bytearray(damaged(data, changes, cut))
    if len(out) >= HEADER_BYTES:
        out[8:12] = (len(out) - LOG_OVERHEAD).to_bytes(4, "big")
        out[17:21] = crc32c(out[21:]).to_bytes(4, "big")
    return out


@settings(deadline=None, max_examples=400)
@given(rows, rules, damage, cuts, st.integers(-1, 5), st.integers(-1, 5), st.booleans())
def test_one_call_agrees_with_step_by_step_checks(
    content: list,  # type: ignore[type-arg]
    topic: TopicRules,
    changes: list[tuple[int, int]],
    cut: int,
    producer_id: int,
    sequence: int,
    sealed: bool,
) -> None:
    """A read-only batch is checked step by step, a writable one by one call if possible."""
    data = batch_of(content, Compression.NONE, producer_id=producer_id, base_sequence=sequence)
    given_bytes = resealed(data, changes, cut) if sealed else damaged(data, changes, cut)
    read_only = outcome(bytes(given_bytes), topic)
    assert outcome(memoryview(bytearray(given_bytes)), topic) == read_only
    assert outcome(memoryview(bytearray(data)), topic) == outcome(data, topic)


@settings(deadline=None, max_examples=400)
@given(rows, rules, damage, cuts, st.integers(-1, 5), st.integers(-1, 5))
def test_c_and_python_agree_on_whole_batches(
    content: list,  # type: ignore[type-arg]
    topic: TopicRules,
    changes: list[tuple[int, int]],
    cut: int,
    producer_id: int,
    sequence: int,
) -> None:
    data = batch_of(content, Compression.NONE, producer_id=producer_id, base_sequence=sequence)
    arguments = (topic.plain_bytes_max, *topic.timestamps(NOW))
    for one in (data, damaged(data, changes, cut), resealed(data, changes, cut)):
        said = {
            walker.is_plain(bytearray(one), *arguments, keyed=topic.compacted)
            for walker in WALKERS.values()
        }
        assert len(said) == 1
