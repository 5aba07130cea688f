"""A stored batch as it is served: checked, with the offsets that its commit gave it. Pure.

The CRC is checked before anything is changed. Base offset and leader epoch lie outside of it; a
stamp of LogAppendTime lies inside, so the CRC is made anew then.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from crc32c import crc32c

from skylog.diskless.plane import LOG_APPEND_TIME, BatchCoordinate
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, Batch, batch_size, patch_offset

# Pure diskless partitions have no epochs of leaders: everything was written in this one.
SERVED_EPOCH: Final = 0
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_MAX_TIMESTAMP: Final = Struct(">q")
_LOG_APPEND_TIME_FLAG: Final = 0x08


def serve(coordinate: BatchCoordinate, pieces: Sequence[memoryview]) -> bytearray:
    """The batches of a coordinate, ready for a client; CORRUPT_MESSAGE if they are not what they
    should be. Adjacent batches may share a coordinate: they are placed one after the other."""
    data = bytearray().join(pieces)
    view = memoryview(data)
    position, offset = 0, coordinate.base_offset
    while position < len(data):
        left = len(data) - position
        size = batch_size(view, position) if left >= HEADER_BYTES else 0
        if not HEADER_BYTES <= size <= left:
            raise _corrupt(coordinate, f"a batch of {size} bytes where {left} are left")
        offset = _place(coordinate, view[position : position + size], offset)
        position += size
    if offset != coordinate.last_offset + 1:
        raise _corrupt(coordinate, f"records up to {offset - 1}, not {coordinate.last_offset}")
    return data


def _place(coordinate: BatchCoordinate, view: memoryview, offset: int) -> int:
    batch = Batch(view)
    if batch.magic != coordinate.magic or not batch.crc_ok():
        raise _corrupt(coordinate, "a batch whose checksum does not fit")
    patch_offset(view, offset, SERVED_EPOCH)
    if coordinate.timestamp_type == LOG_APPEND_TIME:
        _ATTRIBUTES.pack_into(view, 21, batch.attributes | _LOG_APPEND_TIME_FLAG)
        _MAX_TIMESTAMP.pack_into(view, 35, coordinate.log_append_timestamp)
        _CRC.pack_into(view, 17, crc32c(view[21:]))
    return int(offset + batch.last_offset_delta + 1)


def _corrupt(coordinate: BatchCoordinate, why: str) -> KafkaError:
    place = f"{coordinate.object_key} at {coordinate.byte_offset}"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{place}: {why}")
