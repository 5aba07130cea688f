"""Columns in Python: the specification of columns.c, and what runs where C is not built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from skylog.bulk.schema import SCHEMA
from skylog.wire.buffers import Buffer
from skylog.wire.walker_reference import Location, RecordsError, WalkError, scan, skip_bytes

_INT64_MAX: Final = 2**63 - 1
_MICROSECONDS: Final = 1000
_MS_MAX: Final = _INT64_MAX // _MICROSECONDS


class RecordsOfBatch(NamedTuple):
    """The uncompressed records of one batch, and what its header and its coordinates say."""

    data: Buffer
    base_offset: int
    base_timestamp: int
    append_timestamp: int  # of all records, where ``appended``
    record_count: int
    last_delta: int
    appended: bool


class Within(NamedTuple):
    """Which records become rows: offsets up to but without the end, times with both ends."""

    start_offset: int = 0
    end_offset: int = _INT64_MAX
    min_timestamp: int = -_INT64_MAX - 1
    max_timestamp: int = _INT64_MAX


class ColumnsError(ValueError):
    """Records of batch number ``batch`` that are not what the batch declares."""

    def __init__(self, error: int, batch: int, index: int) -> None:
        super().__init__(str(RecordsError(error, index)))
        self.error = WalkError(error)
        self.batch = batch
        self.index = index


class _Row(NamedTuple):
    data: Buffer
    offset: int
    timestamp: int
    appended: bool
    place: Location


def build_columns_python(
    batches: Sequence[RecordsOfBatch], within: Within, wanted: Collection[str]
) -> tuple[int, dict[str, pa.Array]]:
    """``build_columns`` in Python."""
    rows = [row for number, batch in enumerate(batches) for row in _rows_of(number, batch, within)]
    makers = {
        "key": lambda row: _slice(row.data, row.place.key_at, row.place.key_size),
        "value": lambda row: _slice(row.data, row.place.value_at, row.place.value_size),
        "offset": lambda row: row.offset,
        "timestamp": lambda row: max(-_MS_MAX, min(row.timestamp, _MS_MAX)) * _MICROSECONDS,
        "timestampType": lambda row: int(row.appended),
        "headers": _headers,
    }
    built = {
        name: pa.array([make(row) for row in rows], SCHEMA.field(name).type)
        for name, make in makers.items()
        if name in wanted
    }
    return len(rows), built


def _rows_of(number: int, batch: RecordsOfBatch, within: Within) -> list[_Row]:
    rows = []
    try:
        for index, place in enumerate(
            scan(batch.data, batch.record_count, batch.base_timestamp, dense=False)
        ):
            if place.offset_delta > batch.last_delta:
                raise RecordsError(WalkError.BAD_OFFSET, index)
            offset = batch.base_offset + place.offset_delta
            timestamp = batch.append_timestamp if batch.appended else place.timestamp
            if (
                within.start_offset <= offset < within.end_offset
                and within.min_timestamp <= timestamp <= within.max_timestamp
            ):
                rows.append(_Row(batch.data, offset, timestamp, batch.appended, place))
    except RecordsError as error:
        raise ColumnsError(error.error, number, error.index) from None
    return rows


def _slice(data: Buffer, at: int, size: int) -> bytes | None:
    return None if size < 0 else bytes(data[at : at + size])


def _headers(row: _Row) -> list[tuple[str, bytes | None]] | None:
    """None where there are none, as Spark's own source has it."""
    found: list[tuple[str, bytes | None]] = []
    at, end = row.place.headers_at, len(row.data)
    for _ in range(row.place.header_count):
        name_at, name_size, at = skip_bytes(row.data, at, end)
        value_at, value_size, at = skip_bytes(row.data, at, end)
        # Names are text by contract only; one that is not must not hide the record.
        name = bytes(row.data[name_at : name_at + name_size]).decode(errors="replace")
        found.append((name, _slice(row.data, value_at, value_size)))
    return found or None
