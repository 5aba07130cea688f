"""Rows of Arrow columns into partitions and records.

``open_rows`` gives C (rows.c) where it is built, else Python (rows_reference.py). C runs without
the GIL.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from skylog.bulk.rows_reference import PythonRows, Rows, TopicState, Written
from skylog.kernel.native import load_native

# The structs of rows.c. Of a column of strings: its bitmap, its ends, its bytes, its first row.
_STRINGS: Final = Struct("=QQQq")
_ADDRESS: Final = Struct("=Q")
_NUMBERS: Final = Struct("=QQq")
_TOPIC: Final = Struct("=qii")
_NONE: Final = _STRINGS.pack(0, 0, 0, 0)
NATIVE: Final = load_native("rows")

Int32s = np.ndarray[Any, np.dtype[np.int32]]
Int64s = np.ndarray[Any, np.dtype[np.int64]]


class OpenRows(Protocol):
    """See PythonRows for what each does."""

    def partition(
        self,
        topic_of: Int32s | None,
        topics: Sequence[TopicState],
        wanted: pa.Int32Array | None,
        stick_bytes: int,
    ) -> tuple[int, Int32s]: ...

    def write(self, order: Int64s, start: int, stop: int, bytes_max: int) -> Written: ...


class _Wrote(NamedTuple):
    next: int
    bytes: int
    base_timestamp: int
    max_timestamp: int
    needed: int


class NativeRows:
    """The columns as C sees them; they live as long as this."""

    def __init__(self, library: ModuleType, rows: Rows) -> None:
        self._library = library
        self._kept = rows
        self._timestamps = np.ascontiguousarray(rows.timestamps, np.int64)
        structs = None if rows.headers is None else rows.headers.values
        self._headers = () if structs is None else (structs.field("key"), structs.field("value"))
        names, values = self._headers or (None, None)
        self._rows = b"".join(
            (
                *map(_strings, (rows.key, rows.value)),
                _headers(rows.headers),
                *map(_strings, (names, values)),
                _ADDRESS.pack(self._timestamps.ctypes.data),
            )
        )
        self._room = bytearray()

    def partition(
        self,
        topic_of: Int32s | None,
        topics: Sequence[TopicState],
        wanted: pa.Int32Array | None,
        stick_bytes: int,
    ) -> tuple[int, Int32s]:
        states = bytearray().join(_TOPIC.pack(t.bytes, t.count, t.stuck) for t in topics)
        out = np.zeros(len(self._kept), np.int32)
        asked = _NUMBERS.pack(0, 0, 0)
        if wanted is not None:
            present, values = wanted.buffers()
            asked = _NUMBERS.pack(_address(present), _address(values), wanted.offset)
        bad = self._library.partition(
            self._rows, b"" if topic_of is None else topic_of, states, asked, out, stick_bytes
        )
        for topic, (size, _, stuck) in zip(topics, _TOPIC.iter_unpack(states), strict=True):
            topic.bytes, topic.stuck = size, stuck
        return bad, out

    def write(self, order: Int64s, start: int, stop: int, bytes_max: int) -> Written:
        if len(self._room) < bytes_max:
            self._room = bytearray(bytes_max)
        result = self._write_into(self._room, order, start, stop, bytes_max)
        if result.needed:
            # One row is larger than a batch: it gets room of its own, once.
            room = bytearray(result.needed)
            result = self._write_into(room, order, start, start + 1, result.needed)
            records = room
        else:
            records = self._room[: result.bytes]
        return Written(result.next, records, result.base_timestamp, result.max_timestamp)

    def _write_into(
        self, room: bytearray, order: Int64s, start: int, stop: int, bytes_max: int
    ) -> _Wrote:
        return _Wrote._make(self._library.write(self._rows, order, room, start, stop, bytes_max))


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.address)


def _strings(column: pa.BinaryArray | None) -> bytes:
    if column is None:
        return _NONE
    return _STRINGS.pack(*map(_address, column.buffers()), column.offset)


def _headers(column: pa.ListArray | None) -> bytes:
    if column is None:
        return _NONE
    present, ends = column.buffers()[:2]
    return _STRINGS.pack(_address(present), _address(ends), 0, column.offset)


def open_rows(rows: Rows, library: ModuleType | None = NATIVE) -> OpenRows:
    """Columns ready to be written."""
    return PythonRows(rows) if library is None else NativeRows(library, rows)
