"""Splits a byte stream into frames: a four-byte length, then as many bytes.

Made for ``asyncio.BufferedProtocol``: the loop asks for a buffer, fills it and reports the number
of bytes.

* Between frames, data is read into a shared buffer, which may receive many small frames at once;
  each is copied out, since the buffer is reused.
* An incomplete frame gets its own buffer as soon as its length is known and allowed,
  and the rest is received into it. The buffer of a very large one grows as its bytes arrive: memory
  is allocated for received bytes, not for a claimed length.

The shared buffer belongs to all assemblers of a thread, so an idle connection holds no memory. That
is safe because the loop fills the buffer and reports it before it does anything else.
"""

from __future__ import annotations

import struct
import threading
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.kernel.limits import (
    FRAME_AT_ONCE_BYTES_MAX,
    FRAME_HEAD_KEPT_BYTES_MAX,
    FRAME_SCRATCH_BYTES,
)

_LENGTH: Final = struct.Struct(">i")


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.view = memoryview(bytearray(FRAME_SCRATCH_BYTES))


_scratch: Final = _Scratch()


class FrameAssembler:
    """The frames of one connection. ``limit`` is the largest allowed frame, and may be set at any
    time.

    ``failure`` is set if the bytes after the last frame are invalid: no more may be received.
    """

    __slots__ = ("_filled", "_frame", "_head", "_length", "failure", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.failure: ProtocolError | None = None
        # The frame being received, its length, and how much of it has arrived.
        self._frame: memoryview | None = None
        self._length = 0
        self._filled = 0
        # The first bytes of a frame that is still too short for a buffer of its own.
        self._head = b""

    @property
    def held(self) -> int:
        """Memory held by an incomplete frame."""
        return 0 if self._frame is None else len(self._frame)

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer for the next bytes. The size hint is not used, because the frame's length
        is known."""
        if self._frame is not None:
            return self._frame[self._filled :]
        head = self._head
        if not head:
            return _scratch.view
        _scratch.view[: len(head)] = head
        return _scratch.view[len(head) :]

    def buffer_updated(self, nbytes: int) -> list[memoryview]:
        """The frames that are complete now, without their lengths; they stay valid.

        ProtocolError if there is none and the bytes cannot become one.
        """
        frame = self._frame
        if frame is None:
            nbytes += len(self._head)
            self._head = b""
            return self._cut(_scratch.view[:nbytes])
        self._filled += nbytes
        if self._filled < len(frame):
            return []
        if self._filled < self._length:
            self._frame = _buffer(min(2 * self._filled, self._length), frame)
            return []
        self._frame = None
        return [frame]

    def _cut(self, data: memoryview) -> list[memoryview]:
        frames: list[memoryview] = []
        position, end = 0, len(data)
        while end - position >= 4:
            (length,) = _LENGTH.unpack_from(data, position)
            if not 0 <= length <= self.limit:
                error = ProtocolError(f"a frame of {length} bytes; {self.limit} are allowed")
                if not frames:
                    raise error
                self.failure = error
                return frames
            start = position + 4
            if start + length > end:
                if length > FRAME_HEAD_KEPT_BYTES_MAX:
                    self._begin(length, data[start:])
                    return frames
                break
            position = start + length
            # Writable, so that a produced batch is assigned its offset in place.
            frames.append(memoryview(bytearray(data[start:position])))
        self._head = bytes(data[position:])
        return frames

    def _begin(self, length: int, received: memoryview) -> None:
        self._length = length
        self._filled = len(received)
        self._frame = _buffer(min(length, FRAME_AT_ONCE_BYTES_MAX), received)


def _buffer(size: int, begin: memoryview) -> memoryview:
    buffer = memoryview(bytearray(size))
    buffer[: len(begin)] = begin
    return buffer
