"""Forty records into a table without Spark, by a process that kills itself before a step."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pyarrow as pa

from skylog.spark.jobs.chunks import next_chunk
from skylog.spark.jobs.table.columns import Columns
from skylog.spark.jobs.table.iceberg import CatalogOptions, IcebergTarget
from skylog.spark.jobs.table.parquet import ParquetTarget
from skylog.spark.jobs.table.state import State
from skylog.spark.jobs.table.target import Before, Files, Target
from skylog.spark.jobs.table.writer import BAD_ROWS, GOOD_ROWS, ChunkWriter, Decoded

RECORDS = 40
PARTITIONS = 2
CHUNK = 25
STEPS = {
    "iceberg": ("create", "bad", "good", "end"),
    "parquet": ("intent", "move bad", "move good", "state", "end"),
}


@dataclass(frozen=True)
class Sevenths:
    """Every seventh record is bad."""

    def unknown(self, batch: pa.RecordBatch) -> set[int]:
        return set()

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        errors = ["seventh" if i % 7 == 0 else None for i in batch.column("offset").to_pylist()]
        return Decoded([batch.column("value")], pa.array(errors, pa.string()))


def target(form: str, to: str, before: Before) -> Target:
    if form == "iceberg":
        return IcebergTarget(CatalogOptions().open(to), "default.t", before)
    return ParquetTarget(to, "t", before)


def write(form: str, to: str, step: str | None = None, times: int = 1) -> None:
    """Write the whole table, or crash at the given occurrence of a step."""
    left = times

    def before(next_step: str) -> None:
        nonlocal left
        left -= next_step == step
        if step is not None and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    columns, _ = Columns().merge([pa.field("value", pa.binary())])
    ends = dict.fromkeys(range(PARTITIONS), RECORDS)
    initial = State("topic", "id", "raw", columns, 0, dict.fromkeys(range(PARTITIONS), 0))
    table = target(form, to, before)
    with table.opened(initial) as found:
        state = found
        while chunk := next_chunk(state.offsets, ends, CHUNK):
            place = table.place(state.chunk)
            writer = ChunkWriter("topic", state.chunk, columns, Sevenths(), place.good, place.bad)
            batches = [
                batch(index, begin, chunk.end[index]) for index, begin in chunk.start.items()
            ]
            (report,) = writer(iter(batches))
            names = {row["kind"]: [row["name"]] for row in report.to_pylist()}
            after = state.after(chunk.end)
            files = Files(names.get(GOOD_ROWS, []), names.get(BAD_ROWS, []))
            table.commit(state, after, files)
            state = after


def batch(partition: int, start: int, end: int) -> pa.RecordBatch:
    rows = [
        {
            "partition": partition,
            "offset": offset,
            "timestamp": offset * 1000,
            "key": None,
            "value": b"%d-%d" % (partition, offset),
            "headers": None,
        }
        for offset in range(start, end)
    ]
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema = pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", headers),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema)
