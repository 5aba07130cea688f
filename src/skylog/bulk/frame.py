"""A topic as a table: ``skylog.read("topic").to_polars()``, without Spark."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skylog.bulk.errors import DataLossError
from skylog.bulk.names import COLUMNS
from skylog.bulk.parallel import in_parallel
from skylog.bulk.plan import Task, plan_tasks, split_bytes
from skylog.bulk.positions import Positions, ranges_of
from skylog.bulk.process import this_process
from skylog.bulk.properties import BOOTSTRAP, check_config
from skylog.bulk.reader import ReadContext, read_splits
from skylog.client.bulk import PartitionPlan, PartitionRange, Plan, plan_ranges
from skylog.client.cluster import Cluster
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.progress import Progress

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

TASK_BYTES: Final = 16 * 1024 * 1024
BOOTSTRAP_DEFAULT: Final = "localhost:9092"
# A user waits at a prompt: report an unreachable cluster sooner than for a service.
_PATIENCE: Final = {"default.api.timeout.ms": "15000"}


class TopicRead:
    """The contents of a topic when the read was planned; every method reads it again."""

    def __init__(
        self,
        context: ReadContext,
        topic: str,
        tasks: Sequence[Task],
        *,
        threads: int,
        progress: bool,
    ) -> None:
        self._context = context
        self._topic = topic
        self._tasks = tasks
        self._threads = threads
        self._progress = progress

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Spark's Kafka source has them."""
        return self._context.schema()

    @property
    def bytes(self) -> int:
        """Bytes to read, as they are stored."""
        return sum(task.bytes for task in self._tasks)

    def __repr__(self) -> str:
        return (
            f"<skylog topic {self._topic}: {self.bytes:,} bytes in {len(self._tasks)} tasks,"
            f" columns {', '.join(self._context.columns)}>"
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Arrow batches of bounded size, by partition and offset; memory stays bounded."""
        with Progress(self._topic, self.bytes, quiet=not self._progress, in_bytes=True) as progress:
            yield from in_parallel(
                self._tasks,
                lambda task: read_splits(self._context, task.splits, on_bytes=progress.add),
                self._threads,
            )

    def to_reader(self) -> pa.RecordBatchReader:
        """A stream that DuckDB, Polars and other Arrow consumers read without loading all of it."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Accepted by everything that takes Arrow streams: ``polars.from_arrow``,
        ``pyarrow.table``."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows in memory."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars frame."""
        frame: pl.DataFrame = _module("polars").from_arrow(self.to_arrow())
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas frame."""
        _module("pandas")
        return self.to_arrow().to_pandas()


def read(  # noqa: PLR0913 - the options of a reader
    topic: str,
    *,
    bootstrap: str | None = None,
    start: Positions = "earliest",
    end: Positions = "latest",
    partitions: Collection[int] | None = None,
    columns: Sequence[str] = COLUMNS,
    via: str = "bucket",
    config: Mapping[str, str] | None = None,
    storage: Mapping[str, str] | None = None,
    threads: int | None = None,
    progress: bool = True,
    fail_on_data_loss: bool = True,
) -> TopicRead:
    """Plan a read of the topic's current contents.

    ``start`` and ``end`` (which is not read) are earliest, latest, an offset, a datetime (the first
    record at or after it), or a dictionary of these by partition. ``bootstrap`` defaults to
    localhost:9092. ``config`` has settings of a Kafka client (security.protocol, sasl.*, ssl.*),
    ``storage`` settings diskless.storage.* that are not in the environment. ``via="broker"`` reads
    through the brokers. ``progress`` shows a bar on a terminal.
    """
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}; allowed are 1 and more")
    properties = {**_PATIENCE, **_where(bootstrap, check_config(config or {}))}
    context = ReadContext.of(
        properties,
        storage=storage,
        via=via,
        columns=columns,
        fail_on_data_loss=fail_on_data_loss,
    )
    process = this_process()

    async def plan() -> Plan:
        cluster = (await process.connections(context.properties)).cluster
        ranges = await ranges_of(cluster, topic, partitions, start, end)
        return await _plan(cluster, ranges, fail_on_data_loss=fail_on_data_loss)

    found = process.run(plan())
    tasks = plan_tasks(
        [split for partition in found.partitions for split in partition.splits],
        task_bytes=TASK_BYTES,
    )
    return TopicRead(
        context.at(found.storage_url),
        topic,
        tasks,
        threads=threads or os.cpu_count() or 1,
        progress=progress,
    )


def _where(bootstrap: str | None, config: Mapping[str, str]) -> dict[str, str]:
    """The client's settings, with the brokers that one of the two names."""
    said = config.get(BOOTSTRAP)
    if None not in (bootstrap, said) and bootstrap != said:
        raise ConfigError(f"bootstrap is {bootstrap!r}, {BOOTSTRAP} in config {said!r}: set one")
    return {**config, BOOTSTRAP: bootstrap or said or BOOTSTRAP_DEFAULT}


async def _plan(
    cluster: Cluster, ranges: Sequence[PartitionRange], *, fail_on_data_loss: bool
) -> Plan:
    """The splits of the ranges, clamped to each partition's offsets."""
    found = await plan_ranges(cluster, ranges, split_bytes(TASK_BYTES))
    moved = [
        _within_log(wanted, partition, fails=fail_on_data_loss)
        for wanted, partition in zip(ranges, found.partitions, strict=True)
    ]
    if moved != list(ranges):
        found = await plan_ranges(cluster, moved, split_bytes(TASK_BYTES))
    for partition in found.partitions:
        if partition.error:
            place = f"topic {partition.topic} partition {partition.partition}"
            raise KafkaError(partition.error, partition.message or place)
    return found


def _within_log(wanted: PartitionRange, found: PartitionPlan, *, fails: bool) -> PartitionRange:
    """Offsets beyond the end of a partition mean its end; deleted ones count as lost."""
    if found.error is not ErrorCode.OFFSET_OUT_OF_RANGE or found.high_watermark < 0:
        return wanted
    low, high = found.log_start_offset, found.high_watermark
    start, end = wanted.start_offset, wanted.end_offset
    if 0 <= start < low and fails:
        why = f"the log begins at {low}"
        raise DataLossError(wanted.topic, wanted.partition, start, low, why)
    return replace(
        wanted,
        start_offset=start if start < 0 else min(max(start, low), high),
        end_offset=end if end < 0 else min(max(end, low), high),
    )


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"this needs {name}: pip install {name}", name=name) from error
