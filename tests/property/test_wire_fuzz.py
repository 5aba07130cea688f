"""Malicious bytes raise nothing but ProtocolError, and use memory in proportion to their size."""

from __future__ import annotations

import contextlib
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import ProtocolError
from skylog.wire.apis import decode_request_header
from skylog.wire.codec import decode, decode_at, encode
from skylog.wire.control_records import parse_control
from skylog.wire.coordinator_records import decode_group_record, decode_transaction_record
from skylog.wire.frames import FrameAssembler
from skylog.wire.metadata_records import decode_metadata
from skylog.wire.schema import Message
from tests.property.wire_values import all_versions, make

VERSIONS = list(all_versions())
# Malicious values of counts and lengths.
HUGE = (
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\x7f",
    b"\x00\xff\xff\xff",
)
# One message may cost this much more than its bytes: the objects of its smallest elements.
MEMORY_PER_BYTE_MAX = 200
MEMORY_FIXED_MAX = 300_000


def read(cls: type[Message], version: int, data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        message, position = decode_at(cls, data, version, 0)
        assert 0 <= position <= len(data)
        # A message that was read can be written.
        encode(message, version)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(VERSIONS), st.binary(max_size=200))
def test_any_bytes(case: tuple[type[Message], int], data: bytes) -> None:
    read(*case, data)


def test_every_message_with_damage() -> None:
    rng = random.Random(20)
    for cls, version in VERSIONS:
        whole = encode(make(cls, version, rng), version)[:4_000]
        for _ in range(4):
            cut = rng.randrange(len(whole) + 1)
            read(cls, version, whole[:cut])
            damaged = bytearray(whole)
            for _ in range(rng.randint(1, 3)):
                if damaged:
                    damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            read(cls, version, bytes(damaged))
            read(cls, version, whole[:cut] + rng.choice(HUGE) + whole[cut:])


def test_hostile_counts_cost_no_memory() -> None:
    """A count at any place of any message: the work done is in proportion to the bytes."""
    rng = random.Random(21)
    samples = [(c, v) for c, v in VERSIONS if v in (c.VERSIONS.low, c.VERSIONS.high)]
    for cls, version in samples:
        with contextlib.suppress(ProtocolError):
            decode(cls, b"", version)  # compile outside of the measurement
        whole = encode(make(cls, version, rng), version)[:400]
        tracemalloc.start()
        for cut in range(min(len(whole), 12)):
            for number in HUGE:
                read(cls, version, whole[:cut] + number + bytes(40))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY_FIXED_MAX + 500 * MEMORY_PER_BYTE_MAX, (cls, version, peak)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_internal_record(key: bytes, value: bytes | None) -> None:
    for parse in (decode_group_record, decode_transaction_record, parse_control):
        with contextlib.suppress(ProtocolError):
            parse(key, value)
        for kind in range(24):
            with contextlib.suppress(ProtocolError):
                parse(kind.to_bytes(2, "big") + key, value)
            with contextlib.suppress(ProtocolError):
                parse(bytes((0, 0, 0, kind)), value)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 30), st.integers(0, 4), st.binary(max_size=80))
def test_any_metadata_record(kind: int, version: int, body: bytes) -> None:
    for data in (body, bytes((1, kind, version)) + body):
        with contextlib.suppress(ProtocolError):
            decode_metadata(data)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 93), st.integers(0, 20), st.binary(max_size=40))
def test_any_request_header(key: int, version: int, rest: bytes) -> None:
    for frame in (rest, key.to_bytes(2, "big") + version.to_bytes(2, "big") + rest):
        with contextlib.suppress(ProtocolError):
            position = decode_request_header(memoryview(frame))[-1]
            assert position <= len(frame)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.binary(max_size=9_000), max_size=12),
    st.lists(st.integers(1, 80_000), min_size=1, max_size=8),
)
def test_frames_in_any_pieces(bodies: list[bytes], sizes: list[int]) -> None:
    """However the network splits the stream, the frames are the same and do not change later."""
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    assembler = FrameAssembler(9_000)
    other = FrameAssembler(100)  # shares the scratch buffer
    frames: list[memoryview] = []
    position = turn = 0
    while position < len(stream):
        room = assembler.get_buffer(-1)
        count = min(len(room), sizes[turn % len(sizes)], len(stream) - position)
        room[:count] = stream[position : position + count]
        frames += assembler.buffer_updated(count)
        position += count
        turn += 1
        noise = other.get_buffer(-1)
        noise[:6] = b"\0\0\0\x02ab"
        assert [bytes(f) for f in other.buffer_updated(6)] == [b"ab"]
    assert [bytes(f) for f in frames] == bodies


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_a_frame_of_impossible_length_is_refused_before_anything_is_allocated(length: int) -> None:
    assembler = FrameAssembler(100)
    assembler.get_buffer(-1)[:4] = length.to_bytes(4, "big", signed=True)
    tracemalloc.start()
    with pytest.raises(ProtocolError, match=str(length)):
        assembler.buffer_updated(4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
