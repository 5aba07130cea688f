"""The records of many batches as Arrow columns, nothing per record in Python.

``build_columns`` runs in C (columns.c, built by tools/build_native.py) where the library is there,
else in Python (columns_reference.py). The C side runs without the GIL and writes straight into
buffers of Arrow's.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from skylog.bulk.columns_reference import (
    ColumnsError,
    RecordsOfBatch,
    Within,
    build_columns_python,
)
from skylog.bulk.schema import HEADER, SCHEMA
from skylog.kernel.errors import invariant

ABI_VERSION: Final = 1
LIBRARY: Final = Path(__file__).with_name("_columns.so")
# Arrow's ordinary strings have 32-bit ends.
COLUMN_BYTES_MAX: Final = 2**31 - 1

_BATCH: Final = struct.Struct("=Qqqqiiii")
_WITHIN: Final = struct.Struct("=qqqq")
_MEASURE: Final = struct.Struct("=10q4i")
_COLUMNS: Final = struct.Struct("=17Q")
_NULL: Final = 0


class _Measure(NamedTuple):
    """What the columns take, or which record of which batch is broken."""

    rows: int
    key_bytes: int
    key_nulls: int
    value_bytes: int
    value_nulls: int
    headerless: int
    headers: int
    header_key_bytes: int
    header_value_bytes: int
    header_value_nulls: int
    error: int
    error_batch: int
    error_index: int
    unused: int


class _Strings(NamedTuple):
    """Room for a column of byte strings; ``present`` is None where it has no null."""

    rows: int
    nulls: int
    ends: pa.Buffer
    data: pa.Buffer
    present: pa.Buffer | None

    @classmethod
    def room(cls, rows: int, size: int, nulls: int) -> _Strings:
        return cls(
            rows,
            nulls,
            pa.allocate_buffer(4 * (rows + 1)),
            pa.allocate_buffer(size),
            _bits(rows) if nulls else None,
        )

    def addresses(self) -> tuple[int, int, int]:
        return self.ends.address, self.data.address, _address(self.present)

    def array(self) -> pa.Array:
        buffers = [self.present, self.ends, self.data]
        return pa.Array.from_buffers(pa.binary(), self.rows, buffers, null_count=self.nulls)


def _bits(rows: int) -> pa.Buffer:
    return pa.allocate_buffer((rows + 7) // 8)


def _address(buffer: pa.Buffer | None) -> int:
    return _NULL if buffer is None else int(buffer.address)


class NativeColumns:
    """The C functions; raises OSError where the library is missing or of another version."""

    def __init__(self, library: Path) -> None:
        loaded = ctypes.CDLL(str(library))
        try:
            version = loaded.skylog_columns_abi_version()
        except AttributeError as error:
            raise OSError(f"{library} does not build columns") from error
        if version != ABI_VERSION:
            raise OSError(f"{library} has version {version}, wanted {ABI_VERSION}")
        i32, pointer = ctypes.c_int32, ctypes.c_void_p
        self._measure = loaded.skylog_measure
        self._measure.restype = None
        self._measure.argtypes = (pointer, i32, pointer, pointer)
        self._fill = loaded.skylog_fill
        self._fill.restype = ctypes.c_int64
        self._fill.argtypes = (pointer, i32, pointer, pointer)

    def build_columns(
        self, batches: Sequence[RecordsOfBatch], within: Within, wanted: Collection[str]
    ) -> tuple[int, dict[str, pa.Array]]:
        # The buffers keep the bytes where they are until C is done.
        held = [pa.py_buffer(batch.data) for batch in batches]
        packed = b"".join(map(_packed, held, batches))
        range_ = _WITHIN.pack(*within)
        found = ctypes.create_string_buffer(_MEASURE.size)
        self._measure(packed, len(held), range_, found)
        room = _Room(_Measure._make(_MEASURE.unpack(found)), wanted)
        filled = self._fill(packed, len(held), range_, room.addresses())
        invariant(filled == room.rows, "records changed while they were read")
        return room.rows, room.arrays()


def _packed(held: pa.Buffer, batch: RecordsOfBatch) -> bytes:
    return _BATCH.pack(
        held.address if held.size else _NULL,
        batch.base_offset,
        batch.base_timestamp,
        batch.append_timestamp,
        held.size,
        batch.record_count,
        batch.last_delta,
        batch.appended,
    )


class _Room:
    """Buffers of just the size that was measured, for the columns that are wanted."""

    def __init__(self, size: _Measure, wanted: Collection[str]) -> None:
        if size.error:
            raise ColumnsError(size.error, size.error_batch, size.error_index)
        largest = max(
            size.rows,
            size.key_bytes,
            size.value_bytes,
            size.headers,
            size.header_key_bytes,
            size.header_value_bytes,
        )
        if largest > COLUMN_BYTES_MAX:
            raise ValueError(f"a column of {largest} bytes; allowed are {COLUMN_BYTES_MAX}")
        self.rows = rows = size.rows
        self._size = size
        self._numbers = {
            name: pa.allocate_buffer(width * rows)
            for name, width in (("offset", 8), ("timestamp", 8), ("timestampType", 4))
            if name in wanted
        }
        self._strings: dict[str, _Strings] = {}
        if "key" in wanted:
            self._strings["key"] = _Strings.room(rows, size.key_bytes, size.key_nulls)
        if "value" in wanted:
            self._strings["value"] = _Strings.room(rows, size.value_bytes, size.value_nulls)
        self._header_ends = self._header_present = None
        if "headers" in wanted:
            self._header_ends = pa.allocate_buffer(4 * (rows + 1))
            self._header_present = _bits(rows) if size.headerless else None
            count, nulls = size.headers, size.header_value_nulls
            self._strings["header key"] = _Strings.room(count, size.header_key_bytes, 0)
            self._strings["header value"] = _Strings.room(count, size.header_value_bytes, nulls)

    def addresses(self) -> bytes:
        """The struct ``columns`` of columns.c."""
        pointers = [
            _address(self._numbers.get(name)) for name in ("offset", "timestamp", "timestampType")
        ]
        for name in ("key", "value", "header key", "header value"):
            strings = self._strings.get(name)
            pointers += strings.addresses() if strings else (_NULL, _NULL, _NULL)
        pointers += _address(self._header_ends), _address(self._header_present)
        return _COLUMNS.pack(*pointers)

    def arrays(self) -> dict[str, pa.Array]:
        built = {
            name: pa.Array.from_buffers(SCHEMA.field(name).type, self.rows, [None, buffer], 0)
            for name, buffer in self._numbers.items()
        }
        for name in ("key", "value"):
            if name in self._strings:
                built[name] = self._strings[name].array()
        if self._header_ends is not None:
            built["headers"] = self._headers()
        return built

    def _headers(self) -> pa.Array:
        names = _text(self._strings["header key"].array())
        values = self._strings["header value"].array()
        entries = pa.StructArray.from_arrays([names, values], fields=list(HEADER))
        return pa.Array.from_buffers(
            SCHEMA.field("headers").type,
            self.rows,
            [self._header_present, self._header_ends],
            self._size.headerless,
            children=[entries],
        )


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        # Names are text by contract only; one that is not must not hide the record.
        replaced = [name.decode(errors="replace") for name in names.to_pylist()]
        return pa.array(replaced, pa.string())


def load_native(library: Path = LIBRARY) -> NativeColumns | None:
    """The functions in C, or None where this installation has none that fit."""
    try:
        return NativeColumns(library)
    except OSError:
        return None


NATIVE: Final = load_native()
# (number of rows, the wanted ones of key, value, offset, timestamp, timestampType, headers).
# Raises ColumnsError, and ValueError where a column would be larger than COLUMN_BYTES_MAX.
build_columns: Final[Any] = NATIVE.build_columns if NATIVE else build_columns_python
