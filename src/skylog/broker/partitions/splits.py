"""Splits of a classic partition: its segments, cut at batches that their indexes know.

An index has an entry for every few kilobytes, so splits have the requested size to within a batch.
Data that is too old is skipped by whole segments. What is in the object store only comes first, in
pieces of about that size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from skylog.diskless.bulk import PlannedRange, RangeRequest
from skylog.diskless.rules import ranges
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.errors import ErrorCode

if TYPE_CHECKING:
    from skylog.log.log import Log
    from skylog.log.segment import Segment
    from skylog.tiered.reading.pieces import Piece


def planning(
    log: Log, request: RangeRequest, split_bytes: int, remote: Sequence[Piece] = ()
) -> Callable[[], PlannedRange]:
    """What plans it. Blocks while indexes are read.

    ``remote``: what comes before the local log, as it is now.
    """
    segments, local_start = log.segments, log.local_log_start_offset
    log_end = log.log_end_offset
    state = LogState(
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        byte_size=log.size,
    )

    def page_of(_at: object, span: ranges.Span, _limit: int) -> ranges.SplitPage:
        page = ranges.split_page(pieces_of(span), span, split_bytes)
        # There is only one page, however many pieces it has.
        return page._replace(batches=0)

    def pieces_of(span: ranges.Span) -> Iterator[ranges.SizedBatch]:
        for piece in remote:
            if piece.last_offset >= span.start and piece.base_offset < span.end:
                yield ranges.SizedBatch(*piece)
        local = span._replace(start=max(span.start, local_start))
        yield from _within(segments, log_end, local, split_bytes)

    def plan() -> PlannedRange:
        steps = ranges.plan([request], 1, lambda _: state)
        try:
            return ranges.run(steps, page_of)[0]
        except OSError:  # retention took a segment from under it
            return PlannedRange(ErrorCode.KAFKA_STORAGE_ERROR)

    return plan


def _within(
    segments: Sequence[Segment], log_end: int, span: ranges.Span, split_bytes: int
) -> Iterator[ranges.SizedBatch]:
    for index, segment in enumerate(segments):
        end = segments[index + 1].base_offset if index + 1 < len(segments) else log_end
        if end <= span.start or not segment.size:
            continue
        if segment.base_offset >= span.end:
            return
        latest_ms = segment.largest_timestamp(block=True) if span.min_timestamp >= 0 else -1
        for piece in _pieces(segment, end, latest_ms, split_bytes):
            if piece.last_offset >= span.start and piece.base_offset < span.end:
                yield piece


def _pieces(
    segment: Segment, end: int, latest_ms: int, split_bytes: int
) -> Iterator[ranges.SizedBatch]:
    """An index entry has the last offset of a batch and the position where the batch begins."""
    index = segment.offset_index(block=True)
    size = segment.size
    offset, at = segment.base_offset, 0
    for target in range(split_bytes, size, split_bytes):
        entry = index.floor_position(target)
        if entry is not None and offset <= entry[0] < end - 1 and entry[1] > at:
            yield ranges.SizedBatch(offset, entry[0], entry[1] - at, latest_ms)
            offset, at = entry[0] + 1, entry[1]
    if offset < end:
        yield ranges.SizedBatch(offset, end - 1, size - at, latest_ms)
