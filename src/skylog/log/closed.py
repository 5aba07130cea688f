"""What a log tells of its closed segments to those that copy them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from skylog.log.names import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX

if TYPE_CHECKING:
    from skylog.log.log import Log


class ClosedSegment(NamedTuple):
    """A rolled segment and the paths of its files; nothing is appended to it any more."""

    base_offset: int
    # The base of the segment behind it.
    next_offset: int
    size: int
    max_timestamp: int
    log: str
    offset_index: str
    time_index: str
    # None: no transaction was aborted.
    transaction_index: str | None
    # The producers' state as of ``next_offset``: ``ProducerSnapshots.require`` before it is read.
    producer_snapshot: str


def closed_segments(log: Log, from_offset: int, stable_offset: int) -> list[ClosedSegment]:
    """Those with offsets from ``from_offset`` on that may be copied, oldest first.

    All but the last, below the last stable offset: what a transaction may still abort stays here.
    May run on any thread, and so is told that offset; reads the time index of a segment whose
    largest time is not known yet.
    """
    segments = log.segments
    # Compaction, before the topic had another policy, may have left empty ones.
    filled = [segment for segment in segments[:-1] if segment.size]
    found: list[ClosedSegment] = []
    for segment, following in pairwise((*filled, segments[-1])):
        if following.base_offset > stable_offset:
            break
        if following.base_offset <= from_offset:
            continue
        has_aborted = not segment.aborted.is_empty
        found.append(
            ClosedSegment(
                segment.base_offset,
                following.base_offset,
                segment.size,
                segment.largest_timestamp(block=True),
                segment.log_path,
                segment.prefix + INDEX_SUFFIX,
                segment.prefix + TIME_INDEX_SUFFIX,
                segment.prefix + TXN_INDEX_SUFFIX if has_aborted else None,
                log.snapshots.path(following.base_offset),
            )
        )
    return found
