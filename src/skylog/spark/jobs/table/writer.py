"""Writes a chunk: the part that runs in tasks.

A task decodes its rows and writes two files, for good and for bad rows, and returns their names.
The driver decides which of them count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from skylog.spark.jobs.folder import Folder
from skylog.spark.jobs.table.columns import BAD, Columns

GOOD_ROWS: Final = "good"
BAD_ROWS: Final = "bad"
UNKNOWN_SCHEMA: Final = "unknown"
REPORT: Final = "kind string, name string, rows long, bytes long"
_REPORT: Final = pa.schema(
    [("kind", pa.string()), ("name", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64())]
)
# Rows are kept until they fill a row group.
_GROUP_BYTES: Final = 64 * 1024 * 1024
_GROUP_ROWS: Final = 1024 * 1024


class Decoded(NamedTuple):
    """Arrays in the order of the columns, and for each row its error, or null."""

    columns: list[Any]
    errors: Any


class Decoder(Protocol):
    """How values become columns; sent to the tasks."""

    def unknown(self, batch: pa.RecordBatch) -> set[int]:
        """Ids of schemas that must be known before the batch can be decoded."""
        ...

    def decode(self, batch: pa.RecordBatch) -> Decoded: ...


class Report(NamedTuple):
    """A file that a task wrote, or (as name) the id of a schema that it does not know."""

    kind: str
    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ChunkWriter:
    """Passed to mapInArrow: rows in, reports out."""

    topic: str
    chunk: int
    columns: Columns
    decoder: Decoder
    good: Folder
    bad: Folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        unknown: set[int] = set()
        with ExitStack() as stack:
            name = self._name()
            good = _File(stack, GOOD_ROWS, self.good, name, self.columns.schema)
            bad = _File(stack, BAD_ROWS, self.bad, name, BAD)
            for batch in batches:
                unknown |= self.decoder.unknown(batch)
                if not unknown:
                    self._write(batch, good, bad)
            reports = [Report(UNKNOWN_SCHEMA, str(number), 0, 0) for number in sorted(unknown)]
            reports += [*good.close(), *bad.close()]
        yield pa.RecordBatch.from_pylist([report._asdict() for report in reports], _REPORT)

    def _name(self) -> str:
        """Unique to this attempt: two attempts of a task may run at once."""
        task = TaskContext.get()
        numbers = (0, 0) if task is None else (task.partitionId(), task.taskAttemptId())
        return f"{self.chunk:010d}-{numbers[0]:05d}-{numbers[1]}.parquet"

    def _write(self, batch: pa.RecordBatch, good: _File, bad: _File) -> None:
        decoded = self.decoder.decode(batch)
        fits = pc.is_null(decoded.errors)
        arrays = [batch.column(name) for name in ("partition", "offset", "timestamp", "key")]
        arrays += [batch.column("headers"), _tombstones(batch), *decoded.columns]
        good.add(_table(arrays, self.columns.schema).filter(fits))
        if fits.false_count:
            topic = pa.repeat(pa.scalar(self.topic, pa.string()), len(batch))
            arrays = [topic, *(batch.column(field.name) for field in BAD if _is_given(field))]
            bad.add(_table([*arrays, decoded.errors], BAD).filter(pc.invert(fits)))


def _is_given(field: pa.Field) -> bool:
    return field.name not in ("topic", "error")


def _tombstones(batch: pa.RecordBatch) -> Any:
    """Decoded values are omitted, so a flag marks tombstones."""
    if "tombstone" in batch.schema.names:
        return batch.column("tombstone")
    return pc.is_null(batch.column("value"))


def _table(arrays: list[Any], schema: pa.Schema) -> pa.Table:
    cast = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.Table.from_arrays(cast, schema=schema)


class _File:
    """A Parquet file that is created with its first row."""

    def __init__(
        self, stack: ExitStack, kind: str, folder: Folder, name: str, schema: pa.Schema
    ) -> None:
        self._stack = stack
        self._kind = kind
        self._folder = folder
        self._name = name
        self._schema = schema
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._held_rows = 0
        self._rows = 0
        self._stream: Any = None
        self._parquet: Any = None

    def add(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        self._held.append(table)
        self._held_bytes += table.nbytes
        self._held_rows += table.num_rows
        if self._held_bytes >= _GROUP_BYTES or self._held_rows >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._parquet is None:
            self._stream = self._stack.enter_context(self._folder.writing(self._name))
            self._parquet = pq.ParquetWriter(self._stream, self._schema, compression="zstd")
        table = pa.concat_tables(self._held)
        self._parquet.write_table(table, row_group_size=table.num_rows)
        self._rows += table.num_rows
        self._held, self._held_bytes, self._held_rows = [], 0, 0

    def close(self) -> list[Report]:
        """The report; the file exists once the stack is left."""
        if self._held:
            self._flush()
        if self._parquet is None:
            return []
        self._parquet.close()
        return [Report(self._kind, self._name, self._rows, self._stream.tell())]
