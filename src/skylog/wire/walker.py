"""Walking the records of a batch: count, sizes, deltas, keys, timestamps, headers.

``walk``, ``locate`` and ``find_timestamp`` run in C (walker.c, built by tools/build_native.py)
where the library is there, else in Python, which is also their readable specification. The C
side keeps the GIL for a short batch, because to give it up and wait for it again would cost more
than the walk, and releases it for a long one. See docs/adr/0003-compiled-walker.md.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from skylog.kernel.errors import invariant
from skylog.wire.buffers import Buffer

ABI_VERSION: Final = 1
LIBRARY: Final = Path(__file__).with_name("_walker.so")
# A record of nothing: size, attributes, two deltas, null key, null value, no headers.
RECORD_BYTES_MIN: Final = 7
ANY_EARLIEST: Final = -(2**63)
ANY_LATEST: Final = 2**63 - 1
# Below this, C is done in a few microseconds and keeps the GIL.
SHORT_BYTES_MAX: Final = 64 * 1024
_INT32_MAX: Final = 2**31 - 1
_LOCATION: Final = struct.Struct("=q8i")


class WalkError(IntEnum):
    """What is wrong with the records."""

    SOUND = 0
    EARLY_END = 1
    BAD_SIZE = 2
    BAD_RECORD = 3
    BAD_OFFSET = 4
    TRAILING_BYTES = 5


class Walk(NamedTuple):
    """What a walk saw. With an ``error``, it saw the records before ``error_index`` only."""

    min_timestamp: int
    max_timestamp: int
    max_timestamp_delta: int
    error: int
    error_index: int
    keyless: int
    outside: int


class Location(NamedTuple):
    """Where one record's parts lie in the data; a size of −1 stands for null."""

    timestamp: int
    record_at: int
    offset_delta: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    headers_at: int
    header_count: int


class RecordsError(ValueError):
    """Records that are not what their batch declares."""

    def __init__(self, error: int, index: int) -> None:
        super().__init__(f"record {index}: {WalkError(error).name.lower().replace('_', ' ')}")
        self.error = WalkError(error)
        self.index = index


def read_varint(data: Buffer, at: int, end: int, bytes_max: int = 5) -> tuple[int, int]:
    """Read a zigzag number of up to 5 bytes (int32) or 10 (int64): (value, position after it)."""
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
    """Step over nullable bytes: (their position, their size, the position after them)."""
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
    # Java's and C's arithmetic wraps; a hostile delta must look the same here.
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


def find_timestamp_python(
    data: Buffer, count: int, base_timestamp: int, target: int, delta_min: int = 0
) -> tuple[int, int] | None:
    """``find_timestamp`` in Python."""
    for record in _read_records(data, count, base_timestamp):
        if record.timestamp >= target and record.offset_delta >= delta_min:
            return record.offset_delta, record.timestamp
    return None


class _WalkResult(ctypes.Structure):
    _fields_ = (
        ("min_timestamp", ctypes.c_int64),
        ("max_timestamp", ctypes.c_int64),
        ("max_timestamp_delta", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("error_index", ctypes.c_int32),
        ("keyless", ctypes.c_int32),
        ("outside", ctypes.c_int32),
    )


_WALK_RESULT: Final = struct.Struct("=qqiiiii")


def _address(data: Buffer) -> Any:
    """What C may read ``data`` by, without a copy where Python lets us: not from read-only views."""
    if isinstance(data, bytes):
        return data
    if not data:
        return b""
    view = memoryview(data)
    return bytes(view) if view.readonly else ctypes.byref(ctypes.c_char.from_buffer(view))


class NativeWalker:
    """The C functions; raises OSError where the library is missing or of another version."""

    def __init__(self, library: Path) -> None:
        keeping_gil = ctypes.PyDLL(str(library))
        releasing_gil = ctypes.CDLL(str(library))
        try:
            version = keeping_gil.skylog_abi_version()
        except AttributeError as error:
            raise OSError(f"{library} is no walker") from error
        if version != ABI_VERSION:
            raise OSError(f"{library} has version {version}, wanted {ABI_VERSION}")
        self._short = self._functions(keeping_gil)
        self._long = self._functions(releasing_gil)

    @staticmethod
    def _functions(library: ctypes.CDLL) -> tuple[Callable[..., Any], Callable[..., Any]]:
        i32, i64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
        walk = library.skylog_walk
        walk.restype = None
        walk.argtypes = (pointer, i32, i32, i64, i64, i64, i32, pointer, pointer)
        find = library.skylog_find_timestamp
        find.argtypes = (pointer, i32, i32, i64, i64, i32, pointer)
        return walk, find

    def _chosen(self, size: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        invariant(size <= _INT32_MAX, "records larger than a batch can be")
        return self._short if size <= SHORT_BYTES_MAX else self._long

    def walk(
        self,
        data: Buffer,
        count: int,
        base_timestamp: int,
        earliest: int = ANY_EARLIEST,
        latest: int = ANY_LATEST,
        *,
        dense: bool = True,
    ) -> Walk:
        function, _ = self._chosen(len(data))
        result = _WalkResult()
        function(
            _address(data),
            len(data),
            count,
            base_timestamp,
            earliest,
            latest,
            dense,
            ctypes.byref(result),
            None,
        )
        return Walk._make(_WALK_RESULT.unpack_from(result))

    def locate(self, data: Buffer, count: int, base_timestamp: int) -> list[Location]:
        # Room is made for no more records than the bytes can hold, whatever the batch declares.
        room = min(max(count, 0), len(data) // RECORD_BYTES_MIN + 1)
        function, _ = self._chosen(len(data))
        result = _WalkResult()
        found = ctypes.create_string_buffer(room * _LOCATION.size)
        function(
            _address(data),
            len(data),
            count,
            base_timestamp,
            ANY_EARLIEST,
            ANY_LATEST,
            False,
            ctypes.byref(result),
            found,
        )
        if result.error:
            raise RecordsError(result.error, result.error_index)
        return [Location._make(row) for row in _LOCATION.iter_unpack(found)]

    def find_timestamp(
        self, data: Buffer, count: int, base_timestamp: int, target: int, delta_min: int = 0
    ) -> tuple[int, int] | None:
        _, function = self._chosen(len(data))
        found = ctypes.create_string_buffer(_LOCATION.size)
        answer = function(
            _address(data), len(data), count, base_timestamp, target, delta_min, found
        )
        if answer < 0:
            raise RecordsError(-answer, 0)
        if answer == 0:
            return None
        location = Location._make(_LOCATION.unpack(found))
        return location.offset_delta, location.timestamp


def load_native(library: Path = LIBRARY) -> NativeWalker | None:
    """The C walker, or None where this installation has none that fits."""
    try:
        return NativeWalker(library)
    except OSError:
        return None


NATIVE: Final = load_native()
# Checks count, sizes and deltas of all records; says what it saw rather than raise.
walk: Final = NATIVE.walk if NATIVE else walk_python
# Lists where each record's parts lie; deltas only need to grow. Raises RecordsError.
locate: Final = NATIVE.locate if NATIVE else locate_python
# (offset delta, timestamp) of the first record at or after a time. Raises RecordsError.
find_timestamp: Final = NATIVE.find_timestamp if NATIVE else find_timestamp_python
