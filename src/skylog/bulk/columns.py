"""The records of many batches as Arrow columns, nothing per record in Python.

``build_columns`` runs in C (columns.c) where it is built, else in Python (columns_reference.py).
The C side runs without the GIL and writes straight into buffers of Arrow's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from skylog.bulk.columns_reference import (
    ColumnsError,
    RecordsOfBatch,
    Within,
    build_columns_python,
)
from skylog.bulk.schema import HEADER, SCHEMA
from skylog.kernel.native import load_native

# Arrow's ordinary strings have 32-bit ends.
COLUMN_BYTES_MAX: Final = 2**31 - 1
# A record without anything: seven numbers of a byte each.
_RECORD_BYTES_MIN: Final = 7

_BATCH: Final = struct.Struct("=Qqqqiiii")
_WITHIN: Final = struct.Struct("=qqqq")
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


class _Strings(NamedTuple):
    """Room for a column of byte strings."""

    ends: pa.Buffer
    data: pa.Buffer
    present: pa.Buffer

    @classmethod
    def room(cls, rows: int, size: int) -> _Strings:
        return cls(_room(4 * (rows + 1)), _room(size), _bits(rows))

    def addresses(self) -> tuple[int, int, int]:
        return self.ends.address, self.data.address, self.present.address

    def array(self, rows: int, size: int, nulls: int) -> pa.Array:
        present = _cut(self.present, (rows + 7) // 8) if nulls else None
        buffers = [present, _cut(self.ends, 4 * (rows + 1)), _cut(self.data, size)]
        return pa.Array.from_buffers(pa.binary(), rows, buffers, null_count=nulls)


def _room(size: int) -> pa.Buffer:
    return pa.allocate_buffer(size, resizable=True)


def _bits(rows: int) -> pa.Buffer:
    return _room((rows + 7) // 8)


def _cut(buffer: pa.Buffer, size: int) -> pa.Buffer:
    """What was used of it; the rest is given back."""
    if buffer.size != size:
        buffer.resize(size, shrink_to_fit=True)
    return buffer


def _address(buffer: pa.Buffer | None) -> int:
    return _NULL if buffer is None else int(buffer.address)


class NativeColumns:
    """The functions in C."""

    def __init__(self, library: ModuleType) -> None:
        self._measure: Callable[..., tuple[int, ...]] = library.measure
        self._fill: Callable[..., tuple[int, ...]] = library.fill

    def build_columns(
        self, batches: Sequence[RecordsOfBatch], within: Within, wanted: Collection[str]
    ) -> tuple[int, dict[str, pa.Array]]:
        # The buffers keep the bytes where they are until C is done.
        held = [pa.py_buffer(batch.data) for batch in batches]
        packed = b"".join(map(_packed, held, batches))
        range_ = _WITHIN.pack(*within)
        size = _bound(held, batches)
        if "headers" in wanted or size.value_bytes > COLUMN_BYTES_MAX:
            size = _checked(self._measure(packed, range_))
        room = _Room(size, wanted)
        filled = _checked(self._fill(packed, range_, room.addresses()))
        return filled.rows, room.arrays(filled)


def _bound(held: Sequence[pa.Buffer], batches: Sequence[RecordsOfBatch]) -> _Measure:
    """The most that keys and values can take, together and so each of them."""
    rows = sum(
        max(min(batch.record_count, data.size // _RECORD_BYTES_MIN), 0)
        for data, batch in zip(held, batches, strict=True)
    )
    size = sum(data.size for data in held)
    return _Measure(rows, size, rows, size, rows, *[0] * 8)


def _checked(found: tuple[int, ...]) -> _Measure:
    size = _Measure._make(found)
    if size.error:
        raise ColumnsError(size.error, size.error_batch, size.error_index)
    return size


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
    """Buffers for so much, for the columns that are wanted."""

    def __init__(self, size: _Measure, wanted: Collection[str]) -> None:
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
        rows = size.rows
        self._numbers = {
            name: (_room(width * rows), width)
            for name, width in (("offset", 8), ("timestamp", 8), ("timestampType", 4))
            if name in wanted
        }
        self._strings: dict[str, _Strings] = {}
        if "key" in wanted:
            self._strings["key"] = _Strings.room(rows, size.key_bytes)
        if "value" in wanted:
            self._strings["value"] = _Strings.room(rows, size.value_bytes)
        self._header_ends = self._header_present = None
        if "headers" in wanted:
            self._header_ends = _room(4 * (rows + 1))
            self._header_present = _bits(rows)
            count = size.headers
            self._strings["header key"] = _Strings.room(count, size.header_key_bytes)
            self._strings["header value"] = _Strings.room(count, size.header_value_bytes)

    def addresses(self) -> bytes:
        """The struct ``columns`` of columns.c."""
        pointers = [
            self._numbers[name][0].address if name in self._numbers else _NULL
            for name in ("offset", "timestamp", "timestampType")
        ]
        for name in ("key", "value", "header key", "header value"):
            strings = self._strings.get(name)
            pointers += strings.addresses() if strings else (_NULL, _NULL, _NULL)
        pointers += _address(self._header_ends), _address(self._header_present)
        return _COLUMNS.pack(*pointers)

    def arrays(self, filled: _Measure) -> dict[str, pa.Array]:
        rows = filled.rows
        built = {
            name: pa.Array.from_buffers(
                SCHEMA.field(name).type, rows, [None, _cut(buffer, width * rows)], 0
            )
            for name, (buffer, width) in self._numbers.items()
        }
        if "key" in self._strings:
            key = self._strings["key"]
            built["key"] = key.array(rows, filled.key_bytes, filled.key_nulls)
        if "value" in self._strings:
            value = self._strings["value"]
            built["value"] = value.array(rows, filled.value_bytes, filled.value_nulls)
        if self._header_ends is not None:
            built["headers"] = self._headers(filled)
        return built

    def _headers(self, filled: _Measure) -> pa.Array:
        count = filled.headers
        names = self._strings["header key"].array(count, filled.header_key_bytes, 0)
        nulls = filled.header_value_nulls
        values = self._strings["header value"].array(count, filled.header_value_bytes, nulls)
        entries = pa.StructArray.from_arrays([_text(names), values], fields=list(HEADER))
        present = self._header_present if filled.headerless else None
        return pa.Array.from_buffers(
            SCHEMA.field("headers").type,
            filled.rows,
            [present, self._header_ends],
            filled.headerless,
            children=[entries],
        )


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        # Names are text by contract only; one that is not must not hide the record.
        replaced = [name.decode(errors="replace") for name in names.to_pylist()]
        return pa.array(replaced, pa.string())


_LIBRARY: Final = load_native("columns")
NATIVE: Final = NativeColumns(_LIBRARY) if _LIBRARY else None
# (number of rows, the wanted ones of key, value, offset, timestamp, timestampType, headers).
# Raises ColumnsError, and ValueError where a column would be larger than COLUMN_BYTES_MAX.
build_columns: Final[Any] = NATIVE.build_columns if NATIVE else build_columns_python
