"""Walks the log of a segment while it is put. Pure.

Once the WAL is pruned the object is the only copy, so nothing that was written to a disk in between
is trusted: every batch must have its checksum, and its offsets must follow those of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from crc32c import crc32c

from skylog.objects.store import ObjectError, Outcome
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC
from skylog.wire.buffers import Buffer

# Base offset, length, leader epoch, magic, checksum, last offset delta.
_HEAD: Final = Struct(">qiibI2xi")
# The checksum covers everything from the attributes on.
_CRC_FROM: Final = 21


class SegmentWalk:
    """Takes the pieces in order; keeps at most the header of a batch that is not complete."""

    __slots__ = (
        "_crc",
        "_crc_wanted",
        "_end_offset",
        "_header",
        "_leader_epoch",
        "_left",
        "_next_offset",
        "_spoiled",
    )

    def __init__(
        self,
        base_offset: int,
        end_offset: int,
        leader_epoch: int,
        spoiled: Callable[[str], None] | None = None,
    ) -> None:
        """``end_offset`` is exclusive. ``spoiled`` is told, on whatever thread that is."""
        self._leader_epoch = leader_epoch
        self._next_offset = base_offset
        self._end_offset = end_offset
        self._spoiled = spoiled
        self._header = b""
        # Of the batch that is being walked: bytes to come, and its checksum so far.
        self._left = 0
        self._crc = 0
        self._crc_wanted = 0

    def take(self, piece: Buffer) -> None:
        view = memoryview(piece)
        at, end = 0, len(view)
        while at < end:
            if self._left:
                stop = min(at + self._left, end)
                self._crc = crc32c(view[at:stop], self._crc)
                self._left -= stop - at
                at = stop
                self._check()
            elif not self._header and end - at >= HEADER_BYTES:
                self._begin(view[at : at + HEADER_BYTES])
                at += HEADER_BYTES
            else:  # a header in two pieces
                stop = min(at + HEADER_BYTES - len(self._header), end)
                self._header += view[at:stop]
                at = stop
                if len(self._header) == HEADER_BYTES:
                    header, self._header = memoryview(self._header), b""
                    self._begin(header)

    def end(self) -> None:
        if self._left or self._header:
            self._fail("it ends within a batch")
        if self._next_offset != self._end_offset:
            self._fail(f"it ends at offset {self._next_offset}, not at {self._end_offset}")

    def _begin(self, header: memoryview) -> None:
        base_offset, length, epoch, magic, self._crc_wanted, delta = _HEAD.unpack_from(header)
        if magic != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD or delta < 0:
            self._fail(f"there is no batch at offset {self._next_offset}")
        if base_offset != self._next_offset:
            self._fail(f"offset {base_offset} instead of {self._next_offset}")
        if epoch != self._leader_epoch:  # the checksum does not cover it either
            self._fail(f"leader epoch {epoch} at offset {base_offset}")
        self._next_offset = base_offset + delta + 1
        self._left = length + LOG_OVERHEAD - HEADER_BYTES
        self._crc = crc32c(header[_CRC_FROM:])
        self._check()

    def _check(self) -> None:
        if not self._left and self._crc != self._crc_wanted:
            self._fail(f"a wrong checksum before offset {self._next_offset}")

    def _fail(self, why: str) -> None:
        if self._spoiled is not None:
            self._spoiled(why)
        raise ObjectError(f"the segment is not what was put together: {why}", Outcome.REFUSED)
