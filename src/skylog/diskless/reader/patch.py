"""Prepares stored batches for clients: verified, with the offsets assigned by their commit. Pure.

The CRC is verified before anything is changed. It does not cover base offset and leader epoch. It
does cover LogAppendTime, for which it is recomputed. Shared bytes are not modified.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from crc32c import crc32c

from skylog.diskless.batch import LOG_APPEND_TIME, BatchCoordinate
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD
from skylog.wire.buffers import Buffer

# Pure diskless partitions have no leader epochs: everything was written in this one.
SERVED_EPOCH: Final = 0
# If its first batch is smaller, a piece is copied: sending each batch in two parts costs more.
VIEWED_BYTES_MIN: Final = 4096
# Length, magic, checksum, attributes and last offset delta.
_FIELDS: Final = Struct(">8xi4xbIhi")
# The bytes before the magic: offset, length and leader epoch.
_HEAD: Final = Struct(">qii")
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_MAX_TIMESTAMP: Final = Struct(">q")
_LOG_APPEND_TIME_FLAG: Final = 0x08


def serve(coordinate: BatchCoordinate, pieces: Sequence[memoryview]) -> bytearray:
    """The batches of a coordinate, ready for a client; CORRUPT_MESSAGE if they are invalid."""
    served = Served(coordinate)
    served.add_all(pieces)
    if served.error is not None:
        raise served.error
    return bytearray().join(served.parts)


class Served:
    """The batches of a coordinate; adjacent ones may share it, and are placed one after the other.

    ``error`` says why ``parts`` end before the coordinate does. ``checked``: the bytes are known to
    be valid. ``copy``: nothing of them may be kept beyond this call. ``own``: nothing else reads
    them, so they may be changed in place.
    """

    __slots__ = (
        "_checked",
        "_copy",
        "_extent",
        "_offset",
        "_own",
        "_stamp",
        "error",
        "parts",
        "size",
    )

    def __init__(
        self,
        coordinate: BatchCoordinate,
        *,
        checked: bool = False,
        copy: bool = False,
        own: bool = False,
    ) -> None:
        self._extent, self._stamp = coordinate.extent, coordinate.stamp
        self._checked = checked
        self._copy = copy
        self._own = own
        self._offset = coordinate.stamp.base_offset
        self.parts: list[Buffer] = []
        self.size = 0
        self.error: KafkaError | None = None

    def add_all(self, pieces: Sequence[memoryview]) -> None:
        """The stored bytes; each piece has whole batches."""
        for piece in pieces:
            self._add(piece)
            if self.error is not None:
                return
        last_offset = self._stamp.last_offset
        if self._offset != last_offset + 1:
            self.parts, self.size = [], 0
            self._fail(f"records up to {self._offset - 1}, not {last_offset}")

    def _add(self, piece: memoryview) -> None:
        """Place a piece, up to its first invalid batch."""
        if self._copy or not (self._own or self._viewed(piece)):
            piece = memoryview(bytearray(piece))
        elif not self._own:
            self.size += self._place(piece, self.parts)
            return
        end = self._place(piece, None)
        if end:
            self.parts.append(piece[:end])
        self.size += end

    def _viewed(self, piece: memoryview) -> bool:
        """Whether it is sent without a copy, with new headers before its batches."""
        if self._stamp.timestamp_type == LOG_APPEND_TIME:
            return False
        return len(piece) < HEADER_BYTES or _FIELDS.unpack_from(piece)[0] >= VIEWED_BYTES_MIN

    def _place(self, piece: memoryview, parts: list[Buffer] | None) -> int:
        """The end of the last valid batch. Without ``parts``, the piece is changed in place."""
        magic_wanted, checked = self._stamp.magic, self._checked
        stamped = self._stamp.timestamp_type == LOG_APPEND_TIME
        position, end, offset = 0, len(piece), self._offset
        while position < end:
            left = end - position
            if left < HEADER_BYTES:
                self._fail(f"{left} bytes instead of a batch")
                break
            length, magic, crc, attributes, delta = _FIELDS.unpack_from(piece, position)
            stop = position + LOG_OVERHEAD + length
            if delta < 0 or not HEADER_BYTES <= length + LOG_OVERHEAD <= left:
                self._fail(f"a batch of {length + LOG_OVERHEAD} bytes, but only {left} are left")
                break
            if magic != magic_wanted or not (checked or crc32c(piece[position + 21 : stop]) == crc):
                self._fail("a batch with a wrong checksum")
                break
            if parts is not None:
                parts.append(_HEAD.pack(offset, length, SERVED_EPOCH))
                parts.append(piece[position + _HEAD.size : stop])
            else:
                _HEAD.pack_into(piece, position, offset, length, SERVED_EPOCH)
                if stamped:
                    self._note_time(piece[position:stop], attributes)
            offset += delta + 1
            position = stop
        self._offset = offset
        return position

    def _note_time(self, batch: memoryview, attributes: int) -> None:
        _ATTRIBUTES.pack_into(batch, 21, attributes | _LOG_APPEND_TIME_FLAG)
        _MAX_TIMESTAMP.pack_into(batch, 35, self._stamp.log_append_timestamp)
        _CRC.pack_into(batch, 17, crc32c(batch[21:]))

    def _fail(self, why: str) -> None:
        place = f"{self._extent.object_key} at {self._extent.byte_offset}"
        self.error = KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{place}: {why}")
