"""Frames from a byte stream: together, in pieces, too large."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ProtocolError
from skylog.kernel.limits import (
    FRAME_AT_ONCE_BYTES_MAX,
    FRAME_HEAD_KEPT_BYTES_MAX,
    FRAME_SCRATCH_BYTES,
)
from skylog.wire.frames import FrameAssembler

MEBIBYTE = 1 << 20


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def feed(assembler: FrameAssembler, data: bytes) -> list[memoryview]:
    """Deliver data as a socket does: into the buffer that is offered."""
    frames: list[memoryview] = []
    while data:
        room = assembler.get_buffer(-1)
        count = min(len(room), len(data))
        room[:count] = data[:count]
        frames += assembler.buffer_updated(count)
        data = data[count:]
    return frames


def test_many_frames_in_one_read_and_an_empty_one() -> None:
    assembler = FrameAssembler(100)
    frames = feed(assembler, framed(b"one") + framed(b"") + framed(b"three"))
    assert [bytes(f) for f in frames] == [b"one", b"", b"three"]


def test_a_frame_byte_by_byte() -> None:
    assembler = FrameAssembler(100)
    frames = [f for byte in framed(b"slowly") for f in feed(assembler, bytes((byte,)))]
    assert [bytes(f) for f in frames] == [b"slowly"]


@pytest.mark.parametrize(
    "size",
    [FRAME_HEAD_KEPT_BYTES_MAX, FRAME_HEAD_KEPT_BYTES_MAX + 1, FRAME_SCRATCH_BYTES, MEBIBYTE],
)
def test_frames_on_both_sides_of_each_limit(size: int) -> None:
    assembler = FrameAssembler(MEBIBYTE)
    bodies = [bytes((n,)) * size for n in range(3)]
    stream = b"".join(map(framed, bodies))
    frames = feed(assembler, stream[:10]) + feed(assembler, stream[10:])
    assert [bytes(f) for f in frames] == bodies


def test_a_large_frame_is_received_into_its_own_buffer() -> None:
    assembler = FrameAssembler(MEBIBYTE)
    body = bytes(range(256)) * 4096
    assert feed(assembler, framed(body)[:1000]) == []
    room = assembler.get_buffer(-1)
    assert len(room) == MEBIBYTE - 996
    room[:] = body[996:]
    (frame,) = assembler.buffer_updated(len(room))
    assert frame.obj is room.obj
    assert frame == body


def test_no_read_goes_past_a_frame_that_is_received_into_its_own_buffer() -> None:
    """The byte after a large frame starts a new frame."""
    assembler = FrameAssembler(MEBIBYTE)
    frames = feed(assembler, framed(b"L" * 200_000) + framed(b"next"))
    assert [len(f) for f in frames] == [200_000, 4]


def test_frames_stay_as_they_are_while_more_is_read() -> None:
    assembler = FrameAssembler(100)
    (first,) = feed(assembler, framed(b"first"))
    feed(assembler, framed(b"xxxxxxxxxxxxxxx"))
    assert first == b"first"


def test_the_limit_is_exact_and_may_be_raised() -> None:
    assembler = FrameAssembler(10)
    assert len(feed(assembler, framed(bytes(10)))) == 1
    with pytest.raises(ProtocolError, match="11 bytes"):
        feed(assembler, framed(bytes(11)))
    assembler = FrameAssembler(10)
    assembler.limit = 11
    assert len(feed(assembler, framed(bytes(11)))) == 1


def test_frames_before_a_bad_one_do_not_hide_it() -> None:
    assembler = FrameAssembler(10)
    assert feed(assembler, framed(b"good")) == [b"good"]
    assert assembler.failure is None
    assert feed(assembler, framed(b"good") + b"\xff\xff\xff\xff") == [b"good"]
    assert assembler.failure is not None


def test_assemblers_of_one_thread_do_not_mix_what_they_keep() -> None:
    one, other = FrameAssembler(100), FrameAssembler(100)
    assert feed(one, framed(b"of one")[:7]) == []
    assert feed(other, framed(b"of other")[:3]) == []
    assert [bytes(f) for f in feed(one, framed(b"of one")[7:])] == [b"of one"]
    assert [bytes(f) for f in feed(other, framed(b"of other")[3:])] == [b"of other"]


@pytest.mark.parametrize("length", [FRAME_AT_ONCE_BYTES_MAX, FRAME_AT_ONCE_BYTES_MAX + 1, 1 << 30])
def test_memory_is_given_for_bytes_and_not_for_a_length(length: int) -> None:
    assembler = FrameAssembler(1 << 30)
    feed(assembler, length.to_bytes(4, "big") + b"x" * 100)
    assert assembler.held == FRAME_AT_ONCE_BYTES_MAX


def test_a_frame_that_grows_is_what_was_sent() -> None:
    assembler = FrameAssembler(1 << 30)
    body = bytes(range(256)) * (5 * 4096 + 1)
    sent = framed(body)
    assert feed(assembler, sent[: 2 * MEBIBYTE]) == []
    assert assembler.held <= 2 * 2 * MEBIBYTE
    (frame,) = feed(assembler, sent[2 * MEBIBYTE :])
    assert frame == body
    assert assembler.held == 0
