"""From ranges to tasks, on the driver: requests splits and packs them by bytes."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from skylog.bulk.plan import TASK_BYTES, Task, plan_tasks, split_bytes
from skylog.client.bulk import PartitionPlan, Plan
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.spark.driver import Driver
from skylog.spark.errors import DataLossError, ReadError, told
from skylog.spark.options import ReadOptions
from skylog.spark.ranges import Log, Range, Ranges

_log = logging.getLogger("skylog.spark")
# Retention may delete records during planning; after this many attempts planning fails.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Planned:
    """What tasks read, from where, and what need not be read."""

    tasks: list[Task]
    storage_url: str | None
    skipped_bytes: dict[str, int] = field(default_factory=dict)


class TaskPartition(InputPartition):
    """One task, as Spark sends it to an executor."""

    def __init__(self, task: Task, context: Any, skipped_bytes: dict[str, int]) -> None:
        super().__init__(None)
        self.task = task
        self.context = context
        self.skipped_bytes = skipped_bytes  # on the first task of a plan, for ``explain``

    def __repr__(self) -> str:
        return f"TaskPartition({len(self.task.splits)} splits, {self.task.bytes} bytes)"


def report(losses: Sequence[str], *, fail: bool) -> None:
    """Losses fail the query, or are only logged."""
    if not losses:
        return
    if fail:
        raise DataLossError(list(losses))
    for loss in losses:
        _log.warning("data is lost: %s; failOnDataLoss is false, so reading continues", loss)


def plan_read(
    driver: Driver,
    options: ReadOptions,
    ranges: Sequence[Range],
    *,
    min_timestamp: int | None = None,
    may_move: bool = False,
) -> Planned:
    """Tasks that read the ranges; ``may_move``: a later start is not a loss."""
    wanted = list(ranges)
    if not wanted:
        return Planned([], None)
    for _ in range(_ATTEMPTS):
        plan = driver.plan(wanted, split_bytes(options.split_bytes or TASK_BYTES), min_timestamp)
        again = _what_is_there(plan, wanted, options)
        if again is None:
            return _planned(plan, options)
        if not may_move:
            report(again.losses, fail=options.fail_on_data_loss)
        wanted = again.ranges
        if not wanted:
            return Planned([], plan.storage_url)
    raise ReadError("the start of partitions moves faster than the read can be planned")


def _planned(plan: Plan, options: ReadOptions) -> Planned:
    skipped: Counter[str] = Counter()
    for part in plan.partitions:
        skipped[part.topic] += part.skipped_bytes
    tasks = plan_tasks(
        [split for part in plan.partitions for split in part.splits],
        task_bytes=options.split_bytes or TASK_BYTES,
        min_tasks=options.min_partitions or 0,
        max_records=options.max_records_per_partition or 0,
        cores=1 if options.split_bytes else _cores(),
    )
    return Planned(tasks, plan.storage_url, dict(skipped))


def _cores() -> int:
    """Spark does not tell how many tasks it runs at once; rarely fewer than this machine's
    cores."""
    return os.cpu_count() or 1


def _what_is_there(plan: Plan, wanted: Sequence[Range], options: ReadOptions) -> Ranges | None:
    """What is left of the ranges, None if all are planned; other errors are raised."""
    answers = {TopicPartition(part.topic, part.partition): part for part in plan.partitions}
    is_complete, left = True, Ranges()
    for key, start, end in wanted:
        part = answers[key]
        if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            is_complete = False
        else:
            _check(part, options)
        left.add(key, start, end, Log(part.log_start_offset, part.high_watermark))
    return None if is_complete else left


def _check(part: PartitionPlan, options: ReadOptions) -> None:
    if part.error is not ErrorCode.NONE:
        error = KafkaError(part.error, part.message)
        raise told(error, options.client["bootstrap.servers"], f"topic {part.topic}")
