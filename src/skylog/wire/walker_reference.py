"""The record walker in Python: the specification of walker.c, and the fallback if C is not built.

A record: size varint, then size bytes: attributes i8, timestamp delta varlong, offset delta varint,
key, value (varint size, negative for null, then bytes), header count varint, headers (key as above
but never null, value as above). Varints are zigzag, at most 5 or 10 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from skylog.wire.buffers import Buffer

ANY_EARLIEST: Final = -(2**63)
ANY_LATEST: Final = 2**63 - 1
# The header of a batch; see batch.py.
_HEADER: Final = Struct(">qi4xb4xhiqqq2xii")
_LENGTH_AFTER: Final = 12
# Codec, log-append time, control and delete horizon.
_NOT_PLAIN: Final = 0x6F


class WalkError(IntEnum):
    """The kinds of errors in records."""

    SOUND = 0
    EARLY_END = 1
    BAD_SIZE = 2
    BAD_RECORD = 3
    BAD_OFFSET = 4
    TRAILING_BYTES = 5


class Walk(NamedTuple):
    """The result of a walk. With an ``error``, it covers only the records before
    ``error_index``."""

    min_timestamp: int
    max_timestamp: int
    max_timestamp_delta: int
    error: int
    error_index: int
    keyless: int
    outside: int


class Location(NamedTuple):
    """The positions of one record's parts; a size of −1 means null."""

    timestamp: int
    record_at: int
    offset_delta: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    headers_at: int
    header_count: int


class Fault(NamedTuple):
    """A valid record that a topic's rules refuse: it has no key, or else a wrong timestamp."""

    timestamp: int
    record_index: int
    keyless: int


class RecordsError(ValueError):
    """The records are not what their batch declares."""

    def __init__(self, error: int, index: int) -> None:
        super().__init__(f"record {index}: {WalkError(error).name.lower().replace('_', ' ')}")
        self.error = WalkError(error)
        self.index = index


def read_varint(data: Buffer, at: int, end: int, bytes_max: int = 5) -> tuple[int, int]:
    """Decode a zigzag number of up to 5 bytes (int32) or 10 (int64): (value, next position)."""
    raw = shift = 0
    for position in range(at, min(end, at + bytes_max)):
        byte = data[position]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF if bytes_max == 5 else 0xFFFFFFFFFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position + 1
        shift += 7
    raise ValueError("unfinished varint")


def skip_bytes(data: Buffer, at: int, end: int) -> tuple[int, int, int]:
    """Skip nullable bytes: (their position, their size, the position after them)."""
    size, at = read_varint(data, at, end)
    if size > end - at:
        raise ValueError("bytes run over the end")
    return at, max(size, -1), at + max(size, 0)


def _skip_headers(data: Buffer, at: int, end: int, count: int) -> int:
    for _ in range(count):
        _, size, at = skip_bytes(data, at, end)
        if size < 0:
            raise ValueError("null header key")
        _, _, at = skip_bytes(data, at, end)
    return at


def _read_body(data: Buffer, start: int, at: int, end: int, base_timestamp: int) -> Location:
    if at >= end:
        raise ValueError("no attributes")
    delta, at = read_varint(data, at + 1, end, bytes_max=10)
    offset_delta, at = read_varint(data, at, end)
    key_at, key_size, at = skip_bytes(data, at, end)
    value_at, value_size, at = skip_bytes(data, at, end)
    header_count, at = read_varint(data, at, end)
    if not 0 <= header_count <= end - at:
        raise ValueError("impossible header count")
    if _skip_headers(data, at, end, header_count) != end:
        raise ValueError("record does not fill its size")
    # Java's and C's arithmetic wraps; a hostile delta must give the same result here.
    timestamp = (base_timestamp + delta + 2**63) % 2**64 - 2**63
    return Location(
        timestamp, start, offset_delta, key_at, key_size, value_at, value_size, at, header_count
    )


def _read_records(data: Buffer, count: int, base_timestamp: int) -> Iterator[Location]:
    at, end = 0, len(data)
    for index in range(count):
        if at >= end:
            raise RecordsError(WalkError.EARLY_END, index)
        start = at
        try:
            size, at = read_varint(data, at, end)
        except ValueError:
            raise RecordsError(WalkError.BAD_SIZE, index) from None
        if not 0 <= size <= end - at:
            raise RecordsError(WalkError.BAD_SIZE, index)
        try:
            record = _read_body(data, start, at, at + size, base_timestamp)
        except ValueError:
            raise RecordsError(WalkError.BAD_RECORD, index) from None
        at += size
        yield record
    if at != end:
        raise RecordsError(WalkError.TRAILING_BYTES, max(count, 0))


def scan(data: Buffer, count: int, base_timestamp: int, *, dense: bool) -> Iterator[Location]:
    """Yield each record's location, in Python; raises RecordsError at the first broken one."""
    last_delta = -1
    for index, record in enumerate(_read_records(data, count, base_timestamp)):
        delta = record.offset_delta
        if delta != index if dense else delta <= last_delta:
            raise RecordsError(WalkError.BAD_OFFSET, index)
        last_delta = delta
        yield record


def walk_python(
    data: Buffer,
    count: int,
    base_timestamp: int,
    earliest: int = ANY_EARLIEST,
    latest: int = ANY_LATEST,
    *,
    dense: bool = True,
) -> Walk:
    """``walk`` in Python."""
    minimum, maximum, maximum_delta = ANY_LATEST, ANY_EARLIEST, 0
    keyless = outside = 0
    error, error_index = WalkError.SOUND, 0
    try:
        for index, record in enumerate(scan(data, count, base_timestamp, dense=dense)):
            timestamp = record.timestamp
            keyless += record.key_size < 0
            outside += timestamp != -1 and not earliest <= timestamp <= latest
            minimum = min(minimum, timestamp)
            if timestamp > maximum or index == 0:
                maximum, maximum_delta = timestamp, record.offset_delta
    except RecordsError as found:
        error, error_index = found.error, found.index
    return Walk(minimum, maximum, maximum_delta, error, error_index, keyless, outside)


def locate_python(data: Buffer, count: int, base_timestamp: int) -> list[Location]:
    """``locate`` in Python."""
    return list(scan(data, count, base_timestamp, dense=False))


def find_faults_python(
    data: Buffer,
    count: int,
    base_timestamp: int,
    timestamps: tuple[int, int],
    *,
    keyed: bool,
    faults_max: int,
) -> list[Fault]:
    """``find_faults`` in Python."""
    earliest, latest = timestamps
    faults: list[Fault] = []
    try:
        for index, record in enumerate(_read_records(data, count, base_timestamp)):
            keyless = keyed and record.key_size < 0
            outside = record.timestamp != -1 and not earliest <= record.timestamp <= latest
            if keyless or outside:
                faults.append(Fault(record.timestamp, index, int(keyless)))
                if len(faults) == faults_max:
                    break
    except RecordsError:
        pass  # records after a broken one are not checked
    return faults


def find_timestamp_python(
    data: Buffer, count: int, base_timestamp: int, target: int, delta_min: int = 0
) -> tuple[int, int] | None:
    """``find_timestamp`` in Python."""
    for record in _read_records(data, count, base_timestamp):
        if record.timestamp >= target and record.offset_delta >= delta_min:
            return record.offset_delta, record.timestamp
    return None


def is_plain_python(
    batch: Buffer, size_max: int, earliest: int, latest: int, *, keyed: bool
) -> bool:
    """``is_plain`` in Python."""
    size = len(batch)
    if not _HEADER.size <= size <= size_max:
        return False
    header = _HEADER.unpack_from(batch)
    base_offset, length, magic, attributes, last_delta, base_timestamp, max_timestamp = header[:7]
    producer_id, base_sequence, count = header[7:]
    framed = base_offset == 0 and length == size - _LENGTH_AFTER and magic == 2
    counted = count > 0 and last_delta == count - 1
    numbered = producer_id < 0 or base_sequence >= 0
    if not (framed and counted and numbered) or attributes & _NOT_PLAIN:
        return False
    records = memoryview(batch)[_HEADER.size :]
    seen = walk_python(records, count, base_timestamp, earliest, latest)
    refused = seen.error or seen.outside or (keyed and seen.keyless)
    return not refused and max(seen.max_timestamp, -1) == max_timestamp
