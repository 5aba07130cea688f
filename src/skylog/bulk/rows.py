"""Rows of Arrow columns into partitions and records.

``open_rows`` gives C (rows.c, built by tools/build_native.py) where the library is there, else
Python (rows_reference.py). C runs without the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from skylog.bulk.rows_reference import PythonRows, Rows, TopicState, Written

ABI_VERSION: Final = 1
LIBRARY: Final = Path(__file__).with_name("_rows.so")

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


class _Strings(ctypes.Structure):
    _fields_ = (
        ("present", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("at", ctypes.c_int64),
    )


class _Rows(ctypes.Structure):
    _fields_ = (
        ("key", _Strings),
        ("value", _Strings),
        ("headers", _Strings),
        ("header_key", _Strings),
        ("header_value", _Strings),
        ("timestamps", ctypes.c_void_p),
    )


class _Numbers(ctypes.Structure):
    _fields_ = (
        ("present", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("at", ctypes.c_int64),
    )


class _Topic(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_int64),
        ("count", ctypes.c_int32),
        ("stuck", ctypes.c_int32),
    )


class _Written(ctypes.Structure):
    _fields_ = (
        ("next", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("base_timestamp", ctypes.c_int64),
        ("max_timestamp", ctypes.c_int64),
        ("needed", ctypes.c_int64),
    )


class NativeLibrary:
    """The C functions; raises OSError where the library is missing or of another version."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        try:
            version = library.skylog_rows_abi_version()
        except AttributeError as error:
            raise OSError(f"{path} is no library of rows") from error
        if version != ABI_VERSION:
            raise OSError(f"{path} has version {version}, wanted {ABI_VERSION}")
        i64, pointer = ctypes.c_int64, ctypes.c_void_p
        self.partition: Callable[..., int] = library.skylog_partition
        library.skylog_partition.restype = i64
        library.skylog_partition.argtypes = (pointer, i64, *(pointer,) * 3, i64, pointer)
        self.write: Callable[..., None] = library.skylog_write
        library.skylog_write.restype = None
        library.skylog_write.argtypes = (pointer, pointer, *(i64,) * 3, pointer, i64, pointer)


class NativeRows:
    """The columns as C sees them; they live as long as this."""

    def __init__(self, library: NativeLibrary, rows: Rows) -> None:
        self._library = library
        self._kept = rows
        self._timestamps = np.ascontiguousarray(rows.timestamps, np.int64)
        structs = None if rows.headers is None else rows.headers.values
        self._headers = () if structs is None else (structs.field("key"), structs.field("value"))
        names, values = self._headers or (None, None)
        self._rows = _Rows(
            _strings(rows.key),
            _strings(rows.value),
            _headers(rows.headers),
            _strings(names),
            _strings(values),
            self._timestamps.ctypes.data,
        )
        self._room = bytearray()

    def partition(
        self,
        topic_of: Int32s | None,
        topics: Sequence[TopicState],
        wanted: pa.Int32Array | None,
        stick_bytes: int,
    ) -> tuple[int, Int32s]:
        states = (_Topic * len(topics))(*(_Topic(t.bytes, t.count, t.stuck) for t in topics))
        out = np.zeros(len(self._kept), np.int32)
        asked = _Numbers()
        if wanted is not None:
            present, values = wanted.buffers()
            asked = _Numbers(_address(present), _address(values), wanted.offset)
        bad = self._library.partition(
            ctypes.byref(self._rows),
            len(out),
            None if topic_of is None else topic_of.ctypes.data,
            states,
            ctypes.byref(asked),
            stick_bytes,
            out.ctypes.data,
        )
        for topic, state in zip(topics, states, strict=True):
            topic.bytes, topic.stuck = state.bytes, state.stuck
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
    ) -> _Written:
        result = _Written()
        out = (ctypes.c_char * len(room)).from_buffer(room)
        self._library.write(
            ctypes.byref(self._rows),
            order.ctypes.data,
            start,
            stop,
            bytes_max,
            out,
            len(room),
            ctypes.byref(result),
        )
        return result


def _address(buffer: pa.Buffer | None) -> int | None:
    return None if buffer is None else buffer.address


def _strings(column: pa.BinaryArray | None) -> _Strings:
    if column is None:
        return _Strings()
    present, ends, data = column.buffers()
    return _Strings(_address(present), _address(ends), _address(data), column.offset)


def _headers(column: pa.ListArray | None) -> _Strings:
    if column is None:
        return _Strings()
    present, ends = column.buffers()[:2]
    return _Strings(_address(present), _address(ends), None, column.offset)


def load_native(library: Path = LIBRARY) -> NativeLibrary | None:
    """The C library, or None where this installation has none that fits."""
    try:
        return NativeLibrary(library)
    except OSError:
        return None


NATIVE: Final = load_native()


def open_rows(rows: Rows, library: NativeLibrary | None = NATIVE) -> OpenRows:
    """Columns ready to be written."""
    return PythonRows(rows) if library is None else NativeRows(library, rows)
