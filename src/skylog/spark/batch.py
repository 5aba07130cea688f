"""Batch reads: planned on the driver, read by tasks straight from the bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from skylog.bulk.plan import Task
from skylog.bulk.reader import ReadContext, read_splits
from skylog.client.offsets import EARLIEST
from skylog.kernel.errors import SkylogError
from skylog.spark.driver import CLIENT_ID, Driver
from skylog.spark.errors import one_sentence
from skylog.spark.filters import Bounds, bounds_of
from skylog.spark.options import ReadOptions
from skylog.spark.planning import Planned, TaskPartition, plan_read, report
from skylog.spark.positions import AtTime, AtTimes, Everywhere
from skylog.spark.quirks import SentToWorkers, pushes_filters, settle
from skylog.spark.ranges import batch_ranges, resolve_end, resolve_start, times_asked


def batch_reader(options: ReadOptions) -> BatchReader:
    """Takes filters only if requested and if Spark passes them.

    Spark (4.3) keeps one plan for each ``load()``, that of the filters it pushed last, and uses it
    for every query on that ``load()``, even those with other filters or none. So this needs
    ``read.push.filters``.
    """
    if options.push_filters and pushes_filters():
        return FilteringReader(options)
    return BatchReader(options)


class BatchReader(SentToWorkers, DataSourceReader):
    """Reads ranges of offsets that are fixed when the query is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._bounds = bounds_in(options)

    @one_sentence
    def partitions(self) -> Sequence[InputPartition]:
        planned = plan_batch(Driver(self._options), self._options, self._bounds)
        return input_partitions(planned, self._options, self._bounds)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition)


class FilteringReader(BatchReader):
    """Skips what cannot match the filters; Spark applies them to the rest."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._bounds = bounds_of(filters, self._bounds)
        return filters


def bounds_in(options: ReadOptions) -> Bounds:
    """The bounds that the options set."""
    return Bounds(timestamp_min=options.timestamp_min, timestamp_max=options.timestamp_max)


def plan_batch(driver: Driver, options: ReadOptions, bounds: Bounds) -> Planned:
    """The tasks of a batch query."""
    logs = driver.logs(driver.partitions())
    start_times = times_asked(options.starting, logs, "starting")
    end_times = times_asked(options.ending, logs, "ending")
    start = resolve_start(
        options.starting,
        logs,
        driver.at_times(start_times),
        latest_if_no_match=options.latest_if_no_match,
    )
    end = resolve_end(options.ending, logs, driver.at_times(end_times))
    by_time = isinstance(options.starting, AtTime | AtTimes)
    found = batch_ranges(start, end, logs, by_time=by_time)
    report(found.losses, fail=options.fail_on_data_loss)
    return plan_read(
        driver,
        options,
        bounds.narrow(found.ranges),
        min_timestamp=bounds.timestamp_min,
        may_move=options.starting == Everywhere(EARLIEST),
    )


def input_partitions(
    planned: Planned, options: ReadOptions, bounds: Bounds
) -> list[InputPartition]:
    """One for each task; an empty one if there is nothing to read."""
    context = ReadContext.of(
        {"client.id": CLIENT_ID, **options.client},
        storage_url=planned.storage_url,
        storage=options.storage,
        via=options.via,
        columns=options.columns,
        min_timestamp=bounds.timestamp_min,
        max_timestamp=bounds.timestamp_max,
        fail_on_data_loss=options.fail_on_data_loss,
    )
    tasks = planned.tasks or [Task(())]
    first = TaskPartition(tasks[0], context, planned.skipped_bytes)
    return [first, *(TaskPartition(task, context, {}) for task in tasks[1:])]


def read_task(partition: Any) -> Iterator[pa.RecordBatch]:
    """The rows of one task; runs on an executor."""
    if not isinstance(partition, TaskPartition):
        return
    settle()
    try:
        yield from read_splits(partition.context, partition.task.splits)
    except SkylogError as error:
        raise error.with_traceback(None) from None
