"""A record batch (magic 2) as a view: the header is parsed, the records stay bytes.

Layout, big-endian::

    0  base_offset i64         21 attributes i16          43 producer_id i64
    8  batch_length i32        23 last_offset_delta i32   51 producer_epoch i16
    12 leader_epoch i32        27 base_timestamp i64      53 base_sequence i32
    16 magic i8                35 max_timestamp i64       57 record_count i32
    17 crc u32 (over 21..end)                             61 records
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from crc32c import crc32c

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.buffers import Buffer

HEADER_BYTES: Final = 61
# Offset and length precede what the length counts.
LOG_OVERHEAD: Final = 12
MAGIC: Final = 2
_HEADER: Final = Struct(">qiibIhiqqqhii")
_PREFIX: Final = Struct(">qi")
_OFFSET: Final = Struct(">q")
_EPOCH: Final = Struct(">i")
# The byte of the attributes that contains all defined bits.
ATTRIBUTES_AT: Final = 22
CODEC_BITS: Final = 0x07
TRANSACTIONAL_BIT: Final = 0x10
DELETE_HORIZON_BIT: Final = 0x40
NO_TIMESTAMP: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1


class Compression(IntEnum):
    """The codecs of attribute bits 0–2."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Batch:
    """One batch: ``buffer`` is exactly its bytes, header included."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
    )

    def __init__(self, buffer: Buffer) -> None:
        """Parse the header at the start of ``buffer``; the caller has checked that it is
        complete."""
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = _HEADER.unpack_from(buffer)
        self.size = length + LOG_OVERHEAD
        self.buffer = buffer

    @property
    def last_offset(self) -> int:
        return int(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        return int(self.base_offset + self.last_offset_delta + 1)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2³¹−1 to 0."""
        if self.base_sequence < 0:
            return -1
        return int(self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX

    @property
    def codec(self) -> int:
        """Attribute bits 0–2, which may be an unknown codec."""
        return int(self.attributes) & CODEC_BITS

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & 0x08)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & 0x20)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones or marker; stored as the base
        timestamp."""
        return int(self.base_timestamp) if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer(self) -> bool:
        return bool(self.producer_id >= 0)

    def crc_ok(self) -> bool:
        return bool(crc32c(memoryview(self.buffer)[21:]) == self.crc)

    def records(self) -> memoryview:
        """The bytes after the header, still compressed."""
        return memoryview(self.buffer)[HEADER_BYTES:]

    def __repr__(self) -> str:
        return f"Batch({self.base_offset}..{self.last_offset}, {self.size} bytes)"


def batch_size(buffer: Buffer, position: int) -> int:
    """The size that the batch at ``position`` claims; at least 12 bytes must be available."""
    size: int = _PREFIX.unpack_from(buffer, position)[1] + LOG_OVERHEAD
    return size


def split_batches(buffer: Buffer) -> Iterator[Batch]:
    """Walk complete, adjacent batches; CORRUPT_MESSAGE if a length does not fit."""
    view = memoryview(buffer)
    position, end = 0, len(view)
    while position < end:
        if end - position < HEADER_BYTES:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "batch is shorter than its header")
        size = batch_size(view, position)
        if size < HEADER_BYTES or size > end - position:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch claims {size} bytes")
        yield Batch(view[position : position + size])
        position += size


def patch_offset(buffer: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Assign a batch its offset and epoch: neither field is covered by the CRC."""
    _OFFSET.pack_into(buffer, 0, base_offset)
    _EPOCH.pack_into(buffer, 12, leader_epoch)
