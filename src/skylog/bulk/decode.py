"""Decodes record batches, as stored in objects, into Arrow record batches.

A batch in an object has its producer's own offsets; its offset in the partition and its append time
are in its coordinates. Records outside the requested range are skipped, as are control batches; the
reader verifies checksums.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from skylog.bulk.columns import build_columns
from skylog.bulk.columns_reference import ColumnsError, RecordsOfBatch, Within
from skylog.bulk.names import COLUMNS
from skylog.bulk.schema import SCHEMA, schema_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import RECORDS_DECOMPRESSED_BYTES_MAX
from skylog.wire.batch import HEADER_BYTES, MAGIC, Batch
from skylog.wire.buffers import Buffer
from skylog.wire.compression import decompress

__all__ = ["SCHEMA", "EncodedBatch", "Selection", "decode", "decode_chunks"]

# Uncompressed bytes per Arrow batch; a larger record batch is one by itself. Small enough to be
# still in the processor's cache when the batch is consumed.
CHUNK_BYTES: Final = 1024 * 1024
CREATE_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """One complete batch (magic 2) from an object, and its offset in the partition."""

    data: Buffer
    base_offset: int
    last_offset: int
    log_append_timestamp: int = CREATE_TIME
    source: str = ""  # the object, for errors


@dataclass(frozen=True, slots=True)
class Selection:
    """What to decode: offsets up to, excluding, the end; times in ms, both inclusive."""

    topic: str
    partition: int
    columns: Sequence[str] = COLUMNS
    start_offset: int = 0
    end_offset: int = 2**63 - 1
    min_timestamp: int | None = None
    max_timestamp: int | None = None

    def within(self) -> Within:
        everything = Within()
        earliest, latest = self.min_timestamp, self.max_timestamp
        return Within(
            self.start_offset,
            self.end_offset,
            everything.min_timestamp if earliest is None else earliest,
            everything.max_timestamp if latest is None else latest,
        )


def decode(  # noqa: PLR0913 - what can be selected
    batches: Sequence[EncodedBatch],
    *,
    topic: str,
    partition: int,
    columns: Sequence[str] = COLUMNS,
    start_offset: int,
    end_offset: int,
    min_timestamp: int | None = None,
    max_timestamp: int | None = None,
) -> pa.RecordBatch:
    """All of the batches as one; ValueError where a column would be larger than 2 GiB."""
    selection = Selection(
        topic, partition, columns, start_offset, end_offset, min_timestamp, max_timestamp
    )
    chosen = [batch for batch in batches if _is_wanted(batch, selection)]
    return _build(chosen, [_open(batch, selection) for batch in chosen], selection)


def decode_chunks(
    batches: Iterable[EncodedBatch], selection: Selection, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[pa.RecordBatch]:
    """The same in pieces of about ``chunk_bytes`` of uncompressed records; none is empty."""
    chosen: list[EncodedBatch] = []
    opened: list[RecordsOfBatch] = []
    size = 0
    for batch in batches:
        if not _is_wanted(batch, selection):
            continue
        records = _open(batch, selection)
        if chosen and size + len(records.data) > chunk_bytes:
            yield from _not_empty(_build(chosen, opened, selection))
            chosen, opened, size = [], [], 0
        chosen.append(batch)
        opened.append(records)
        size += len(records.data)
    yield from _not_empty(_build(chosen, opened, selection))


def _not_empty(built: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if built.num_rows:
        yield built


def _is_wanted(batch: EncodedBatch, selection: Selection) -> bool:
    return batch.last_offset >= selection.start_offset and batch.base_offset < selection.end_offset


def _open(batch: EncodedBatch, selection: Selection) -> RecordsOfBatch:
    """Check the header and decompress; control batches have no user records."""
    data = memoryview(batch.data)
    if len(data) < HEADER_BYTES:
        raise _corrupt(batch, selection, f"a batch of {len(data)} bytes")
    header = Batch(data)
    if header.size != len(data):
        raise _corrupt(batch, selection, f"{len(data)} bytes of a batch of {header.size}")
    if header.magic != MAGIC:
        raise _corrupt(batch, selection, f"message format {header.magic}")
    if header.last_offset_delta != batch.last_offset - batch.base_offset:
        raise _corrupt(batch, selection, f"offsets up to {batch.last_offset} do not fit its header")
    appended = batch.log_append_timestamp != CREATE_TIME
    count = header.record_count
    records: Buffer = b""
    if header.is_control:
        count = 0
    else:
        try:
            records = decompress(header.codec, header.records(), RECORDS_DECOMPRESSED_BYTES_MAX)
        except KafkaError as error:
            raise _corrupt(batch, selection, error.message or str(error), error.code) from error
    return RecordsOfBatch(
        records,
        batch.base_offset,
        header.base_timestamp,
        batch.log_append_timestamp,
        count,
        header.last_offset_delta,
        appended,
    )


def _build(
    batches: Sequence[EncodedBatch], opened: Sequence[RecordsOfBatch], selection: Selection
) -> pa.RecordBatch:
    schema = schema_of(selection.columns)
    try:
        rows, arrays = build_columns(opened, selection.within(), selection.columns)
    except ColumnsError as error:
        raise _corrupt(batches[error.batch], selection, str(error)) from error
    arrays["topic"] = _repeated(selection.topic, rows)
    arrays["partition"] = _repeated(selection.partition, rows)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _repeated(value: str | int, rows: int) -> pa.Array:
    """A column of one value: the beginning of a longer one that is kept."""
    return _long_column(value, 1 << max(rows - 1, 0).bit_length()).slice(0, rows)


@lru_cache(maxsize=16)
def _long_column(value: str | int, rows: int) -> pa.Array:
    """Built from buffers: Arrow's own conversions from Python values import pandas if installed."""
    if isinstance(value, int):
        numbers = pa.py_buffer(array("i", [value]) * rows)
        return pa.Array.from_buffers(pa.int32(), rows, [None, numbers], 0)
    text = value.encode()
    ends = pa.py_buffer(array("i", range(0, (rows + 1) * len(text), len(text))))
    return pa.Array.from_buffers(
        pa.string(), rows, [None, ends, pa.py_buffer(text * rows)], null_count=0
    )


def _corrupt(
    batch: EncodedBatch,
    selection: Selection,
    why: str,
    code: ErrorCode = ErrorCode.CORRUPT_MESSAGE,
) -> KafkaError:
    place = f"topic {selection.topic} partition {selection.partition} offset {batch.base_offset}"
    found = f" in {batch.source}" if batch.source else ""
    return KafkaError(code, f"{place}{found}: {why}")
