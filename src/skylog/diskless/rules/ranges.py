"""Pure: ranges of a partition for bulk readers, for every plane.

A call scans a limited number of batches, in the order of the requests; the next call continues from
there. So a call on a partition with millions of batches does not block others for long.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple, TypeAlias, TypeVar

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.bulk import (
    FROM_LOG_START,
    TO_HIGH_WATERMARK,
    LocatedRange,
    PlannedRange,
    PlannedSplit,
    RangeRequest,
)
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.offsets import LogState, find_error, wal_start
from skylog.kernel.errors import ErrorCode

AnswerT = TypeVar("AnswerT")
ResultT = TypeVar("ResultT")
LogOf: TypeAlias = Callable[[TopicPartition], LogState | None]

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Span(NamedTuple):
    """The offsets of a request, all of which exist in the partition."""

    start: int
    end: int
    min_timestamp: int


class Look(NamedTuple):
    """A read of batches that a result needs."""

    partition: TopicPartition
    span: Span
    limit: int


class SplitPage(NamedTuple):
    """``batches``: how many were scanned; ``end``: the offset after the last of them."""

    splits: Sequence[PlannedSplit]
    skipped_bytes: int
    batches: int
    end: int


class SizedBatch(NamedTuple):
    """What planning needs of a batch."""

    base_offset: int
    last_offset: int
    byte_size: int
    timestamp: int

    @classmethod
    def of(cls, batch: BatchCoordinate) -> SizedBatch:
        stamp = batch.stamp
        return cls(stamp.base_offset, stamp.last_offset, batch.extent.byte_size, stamp.timestamp)


def span_of(request: RangeRequest, log: LogState) -> tuple[ErrorCode, Span]:
    """The bounds of the range. Its end must exist as well: the whole plan is readable."""
    start, end = request.start_offset, request.end_offset
    if start == FROM_LOG_START:
        start = wal_start(log)
    if end == TO_HIGH_WATERMARK:
        end = log.high_watermark
    error = find_error(start, log)
    if not error and not 0 <= end <= log.high_watermark:
        error = ErrorCode.OFFSET_OUT_OF_RANGE
    return error, Span(start, max(start, end), request.min_timestamp)


def lacks_tiered(request: RangeRequest, found: PlannedRange) -> bool:
    """Whether a plan from the log start begins at the WAL start instead, and above it."""
    from_start = request.start_offset == FROM_LOG_START and not request.wal_only
    return from_start and found.log_start_offset < found.wal_start_offset


def run(steps: Generator[Look, AnswerT, ResultT], look: Callable[..., AnswerT]) -> ResultT:
    """Run ``plan`` or ``locate`` without awaiting."""
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(look(*wanted))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def plan(
    requests: Sequence[RangeRequest], max_batches: int, log_of: LogOf
) -> Generator[Look, SplitPage, list[PlannedRange]]:
    """Asks for the split page of a span, limited in batches."""
    results = []
    left = max_batches
    for request in requests:
        log = log_of(request.topic_partition)
        if log is None:
            results.append(PlannedRange(UNKNOWN))
            continue
        error, span = span_of(request, log)
        page = SplitPage((), 0, 0, span.start)
        if not error and span.start < span.end and left > 0:
            page = yield Look(request.topic_partition, span, left)
            whole, left = page.batches < left, left - page.batches
            page = page._replace(end=span.end) if whole else page
        results.append(
            PlannedRange(
                error,
                page.splits,
                next_offset=-1 if error else min(page.end, span.end),
                end_offset=-1 if error else span.end,
                skipped_bytes=page.skipped_bytes,
                log_start_offset=log.log_start_offset,
                high_watermark=log.high_watermark,
                wal_start_offset=wal_start(log),
            )
        )
    return results


def locate(
    requests: Sequence[RangeRequest], max_batches: int, log_of: LogOf
) -> Generator[Look, Sequence[BatchCoordinate], list[LocatedRange]]:
    """Asks for the batches of a span, limited in number; old ones may be left out."""
    results = []
    left = max_batches
    for request in requests:
        log = log_of(request.topic_partition)
        if log is None:
            results.append(LocatedRange(UNKNOWN))
            continue
        error, span = span_of(request, log)
        batches: Sequence[BatchCoordinate] = ()
        end = span.start
        if not error and span.start < span.end and left > 0:
            batches = yield Look(request.topic_partition, span, left)
            end = span.end if len(batches) < left else batches[-1].stamp.last_offset + 1
            left -= len(batches)
        results.append(
            LocatedRange(
                error,
                [one for one in batches if one.stamp.timestamp >= span.min_timestamp],
                next_offset=-1 if error else min(end, span.end),
                end_offset=-1 if error else span.end,
                log_start_offset=log.log_start_offset,
                high_watermark=log.high_watermark,
                wal_start_offset=wal_start(log),
            )
        )
    return results


def within(batches: Iterable[BatchCoordinate], span: Span, limit: int) -> list[BatchCoordinate]:
    """At most ``limit`` batches of the span; they are given in order, from its start."""
    return list(takewhile(lambda one: one.stamp.base_offset < span.end, islice(batches, limit)))


def split_page(batches: Iterable[SizedBatch], span: Span, split_bytes: int) -> SplitPage:
    """Splits the batches of a span, given in order; written so that SQL can express it, too."""
    splits: dict[int, PlannedSplit] = {}
    before = skipped = count = 0
    end = span.start
    for batch in batches:
        count += 1
        end = batch.last_offset + 1
        if batch.timestamp < span.min_timestamp:
            skipped += batch.byte_size
            continue
        number = before // split_bytes
        known = splits.get(number)
        start = batch.base_offset if known is None else known.start_offset
        size = batch.byte_size + (0 if known is None else known.byte_size)
        splits[number] = clamped(PlannedSplit(start, end, size), span)
        before += batch.byte_size
    return SplitPage(list(splits.values()), skipped, count, end)


def page_of_groups(groups: Iterable[tuple[Any, ...]], span: Span) -> SplitPage:
    """From the groups of a database: kept or not, first offset, offset after, bytes, batches."""
    splits = []
    skipped = count = 0
    end = span.start
    for kept, start_offset, end_offset, byte_size, batches in groups:
        count += batches
        end = max(end, end_offset)
        if kept:
            splits.append(clamped(PlannedSplit(start_offset, end_offset, int(byte_size)), span))
        else:
            skipped += int(byte_size)
    return SplitPage(splits, skipped, count, end)


def clamped(split: PlannedSplit, span: Span) -> PlannedSplit:
    """Batches at the edges may extend beyond the requested range."""
    start, end = max(split.start_offset, span.start), min(split.end_offset, span.end)
    return split._replace(start_offset=start, end_offset=end)


def merged(splits: Iterable[PlannedSplit], split_bytes: int) -> Iterator[PlannedSplit]:
    """Splits of consecutive pages: neighbours that together are not too large become one."""
    last: PlannedSplit | None = None
    for split in splits:
        if last is not None and _fit(last, split, split_bytes):
            size = last.byte_size + split.byte_size
            last = last._replace(end_offset=split.end_offset, byte_size=size)
            continue
        if last is not None:
            yield last
        last = split
    if last is not None:
        yield last


def _fit(split: PlannedSplit, other: PlannedSplit, split_bytes: int) -> bool:
    return split.region == other.region and split.byte_size + other.byte_size <= split_bytes
