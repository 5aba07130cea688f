"""Pure: a writer's columns, validated and converted to one type each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skylog.bulk.rows import Int32s
from skylog.bulk.rows_reference import Rows
from skylog.kernel.errors import SkylogError

_HEADERS: Final = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


class BadRows(SkylogError, ValueError):  # noqa: N818 - reads well without Error
    """Rows that cannot be written; the message names the column."""


def columns_of(batch: pa.RecordBatch, now_ms: int) -> Rows:
    """Key, value, headers and timestamps; a missing timestamp is now."""
    if "value" not in batch.schema.names:
        raise BadRows(f"no column value; there are {', '.join(batch.schema.names) or 'none'}")
    return Rows(
        _binary(batch, "key"),
        _binary(batch, "value"),
        _headers(batch),
        _timestamps(batch, now_ms),
    )


def topic_column(batch: pa.RecordBatch) -> tuple[list[str], Int32s | None]:
    """(the topics that occur, which of them each row is for)."""
    column = _column(batch, "topic")
    if column is None:
        raise BadRows("there is neither a column topic nor an option topic")
    if not _is_text(column.type):
        raise BadRows(f"column topic is {column.type}; allowed is string")
    if column.null_count:
        raise BadRows("a row has no topic: column topic is null, and there is no option topic")
    encoded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    names = encoded.dictionary.to_pylist()
    if "" in names:
        raise BadRows("a row has an empty topic in column topic")
    return names, np.ascontiguousarray(encoded.indices.to_numpy(), np.int32)


def partition_column(batch: pa.RecordBatch) -> pa.Int32Array | None:
    """The requested partitions of rows."""
    column = _column(batch, "partition")
    if column is None:
        return None
    if not pa.types.is_integer(column.type):
        raise BadRows(f"column partition is {column.type}; allowed is int")
    return _cast(column, pa.int32(), "partition")


def _column(batch: pa.RecordBatch, name: str) -> Any:
    """None if there is no such column, or it has only nulls without a type."""
    at = batch.schema.get_all_field_indices(name)
    if len(at) > 1:
        raise BadRows(f"{len(at)} columns {name}")
    return None if not at or pa.types.is_null(batch.column(at[0]).type) else batch.column(at[0])


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _cast(column: Any, kind: pa.DataType, name: str) -> Any:
    try:
        return column if column.type == kind else column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadRows(f"column {name}: {error}") from error


def _binary(batch: pa.RecordBatch, name: str) -> pa.BinaryArray | None:
    column = _column(batch, name)
    if column is None:
        return None
    if not _is_bytes(column.type):
        raise BadRows(f"column {name} is {column.type}; allowed are binary and string")
    return _cast(column, pa.binary(), name)


def _headers(batch: pa.RecordBatch) -> pa.ListArray | None:
    column = _column(batch, "headers")
    if column is None:
        return None
    kind = column.type
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    item = kind.value_type if listed else None
    named = item is not None and pa.types.is_struct(item) and item.num_fields == 2
    good = (
        item is not None
        and named
        and [item.field(0).name, item.field(1).name] == ["key", "value"]
        and _is_text(item.field(0).type)
        and _is_bytes(item.field(1).type)
    )
    if not good:
        raise BadRows(
            f"column headers is {kind}; allowed is array of struct of key string, value binary"
        )
    headers = _cast(column, _HEADERS, "headers")
    present = headers.flatten()
    if present.null_count or present.field("key").null_count:
        raise BadRows("a row has a header without a key in column headers")
    return headers


def _timestamps(batch: pa.RecordBatch, now_ms: int) -> Any:
    column = _column(batch, "timestamp")
    if column is None:
        return np.full(batch.num_rows, now_ms, np.int64)
    if pa.types.is_timestamp(column.type):
        # Rounded down to milliseconds, before 1970 too, as in Kafka's clients.
        floored = pc.floor_temporal(column, unit="millisecond")
        stamps = floored.cast(pa.timestamp("ms", tz=column.type.tz)).cast(pa.int64())
    elif pa.types.is_integer(column.type):
        stamps = _cast(column, pa.int64(), "timestamp")
    else:
        raise BadRows(f"column timestamp is {column.type}; allowed are timestamp and bigint (ms)")
    if stamps.null_count:
        stamps = stamps.fill_null(now_ms)
    return np.ascontiguousarray(stamps.to_numpy(zero_copy_only=False), np.int64)
