"""Pure: reads of committed state."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, Protocol

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.coordinator.requests import (
    DescribeFiles,
    DescribeLogs,
    Find,
    FindBatches,
    FindFiles,
    FreeFiles,
    HighWatermarks,
    KnownTopics,
    ListOffsets,
    LocateBatches,
    Look,
    OldestFile,
    PlanRanges,
    StrictRead,
)
from skylog.diskless.coordinator.state import StateView
from skylog.diskless.plane import (
    MAX_TIMESTAMP,
    DescribeFileResult,
    FindRequest,
    FindResult,
    ListOffsetsResult,
    RetentionResult,
    TopicPartition,
)
from skylog.diskless.rules import offsets, pins, ranges
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Findable(Protocol):
    """What a find reads: a ``StateView``, or a tail."""

    def log(self, partition: TopicPartition) -> offsets.LogState | None: ...

    def batches(self, partition: TopicPartition, from_offset: int) -> Iterator[BatchCoordinate]: ...


def read(state: StateView, request: StrictRead, now_ms: int, plane_rules: PlaneRules) -> Any:
    match request:
        case ListOffsets(requests, from_offset):
            return [
                _list_offset(state, (topic_id, index), timestamp, from_offset)
                for topic_id, index, timestamp in requests
            ]
        case DescribeFiles(keys):
            return [_describe(state, key, now_ms, plane_rules) for key in keys]
        case OldestFile():
            return state.oldest_file_ms()


def find(state: StateView, request: Find, coordinator_id: int) -> Any:
    match request:
        case FindBatches():
            return find_batches(state, request)
        case DescribeLogs(partitions):
            return [offsets.log_info(state.log(partition)) for partition in partitions]
        case FreeFiles():
            return state.free_files(
                request.marked_before_ms, request.limit, coordinator_id, waiting=request.waiting
            )
        case FindFiles(keys):
            return [state.file(key) for key in keys]
        case KnownTopics():
            return list({partition[0] for partition, _, _ in state.all_partitions()})
        case HighWatermarks():
            return [(at, log.high_watermark) for at, _, log in state.all_partitions()]


def find_batches(state: Findable, request: FindBatches) -> list[FindResult]:
    budget = offsets.FindBudget(request.fetch_max_bytes, request.max_batches_per_partition)
    return [_find(state, one, budget) for one in request.requests]


def look(state: StateView, request: Look) -> Any:
    match request:
        case PlanRanges(requests, split_bytes, max_batches):
            plan = ranges.plan(requests, max_batches, state.log)
            return ranges.run(
                plan, lambda at, span, limit: state.split_page(at, span, split_bytes, limit)
            )
        case LocateBatches(requests, max_batches):
            steps = ranges.locate(requests, max_batches, state.log)
            return ranges.run(steps, partial(_within, state))


def _within(
    state: StateView, partition: TopicPartition, span: ranges.Span, limit: int
) -> list[BatchCoordinate]:
    """Old batches before the first recent one are skipped."""
    start = span.start
    if span.min_timestamp >= 0:
        first = state.batch_at_time(partition, span.min_timestamp, start)
        if first is None:
            return []
        start = first.stamp.last_offset
    return ranges.within(state.batches(partition, start), span, limit)


def retention(
    state: StateView,
    partition: TopicPartition,
    log: offsets.LogState,
    limits: offsets.RetentionLimits,
    now_ms: int,
    max_batches: int,
) -> RetentionResult:
    """The new log start, and what it deletes."""
    if limits.off:
        return RetentionResult(ErrorCode.NONE, log_start_offset=log.log_start_offset)
    oldest = list(islice(state.batches(partition, 0), max_batches + 1))
    start = offsets.retention_start(oldest, log, limits, now_ms, max_batches)
    gone = [one.extent.byte_size for one in oldest if one.stamp.last_offset < start]
    return RetentionResult(ErrorCode.NONE, len(gone), sum(gone), start)


def prunable(
    state: Findable, partition: TopicPartition, offset: int, max_batches: int
) -> tuple[int, int]:
    """How far a prune to ``offset`` may go, and the number of batches that it drops. Those that
    have not been committed yet are not counted."""
    oldest = list(islice(state.batches(partition, 0), max_batches + 1))
    gone = [batch for batch in oldest if batch.stamp.last_offset < offset]
    if len(gone) > max_batches:
        return gone[-1].stamp.base_offset, max_batches
    return offset, len(gone)


def _find(state: Findable, request: FindRequest, budget: offsets.FindBudget) -> FindResult:
    partition = (request.topic_id, request.partition)
    log = state.log(partition)
    if log is None:
        return FindResult(UNKNOWN)
    error = offsets.find_error(request.offset, log)
    found: list[BatchCoordinate] = []
    if not error and request.offset < log.high_watermark and budget.partition(request.max_bytes):
        found = budget.grant(state.batches(partition, request.offset))
    return FindResult(error, found, log.log_start_offset, log.high_watermark)


def _list_offset(
    state: StateView, partition: TopicPartition, timestamp: int, from_offset: int
) -> ListOffsetsResult:
    log = state.log(partition)
    if log is None:
        return ListOffsetsResult(UNKNOWN)
    named = offsets.named_offset(timestamp, log)
    if named is not None:
        return named
    if timestamp == MAX_TIMESTAMP:
        batch = state.latest_batch(partition, from_offset)
    else:
        batch = state.batch_at_time(partition, timestamp, from_offset)
    return offsets.chosen_offset(batch, timestamp, log)


def _describe(
    state: StateView, key: str, now_ms: int, plane_rules: PlaneRules
) -> DescribeFileResult:
    file = state.file(key)
    pin = state.pins.get(key) if pins.is_staged(key) else None
    pinned = pin is not None and pins.keeps(pin.expires_ms, now_ms, plane_rules)
    known = file is not None or pinned
    code = ErrorCode.NONE if known else ErrorCode.RESOURCE_NOT_FOUND
    return DescribeFileResult(code, file is not None and file.live_batches > 0, pinned)
