"""Which part of a log may be compacted, whether it is worth a pass, and which segments are merged.

``first_dirty`` is where the last pass ended: below it there is one record for each key. The pass
goes up to ``end``, where a segment begins. Untouched are the active segment, data that is not
durable yet, open transactions, and data younger than ``min.compaction.lag.ms``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skylog.log.config import LONG_MAX, LogConfig
from skylog.log.segment import RELATIVE_OFFSET_MAX, Segment, slot_of
from skylog.wire.batch import HEADER_BYTES


class LogState(NamedTuple):
    """What decides about compacting a log, at one moment."""

    segments: Sequence[Segment]
    config: LogConfig
    clean_offset: int
    log_start_offset: int
    log_end_offset: int
    # Below it everything is decided and durable.
    safe_offset: int


@dataclass(frozen=True, slots=True)
class Cleanable:
    """What a pass would do."""

    segments: Sequence[Segment]  # all below ``end``
    first_dirty: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth_it(self, config: LogConfig) -> bool:
        overdue = self.is_overdue and self.dirty_bytes > 0
        return overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio

    @property
    def dirty_segments(self) -> Sequence[Segment]:
        return self.segments[slot_of(self.segments, self.first_dirty) :]


def cleanable(state: LogState, now_ms: int) -> Cleanable:
    """What a pass could clean now; reads indexes and headers, so it blocks."""
    segments, config = state.segments, state.config
    first_dirty = state.clean_offset
    if not state.log_start_offset <= first_dirty <= state.log_end_offset:
        first_dirty = state.log_start_offset
    count = len(segments) - 1
    while count and segments[count].base_offset > state.safe_offset:
        count -= 1
    dirty = slot_of(segments[:count], first_dirty)
    if config.min_compaction_lag_ms > 0:
        count = _old_enough(segments[:count], dirty, now_ms - config.min_compaction_lag_ms)
    end, parts = segments[count].base_offset, segments[:count]
    dirty_parts = parts[dirty:] if first_dirty < end else ()
    return Cleanable(
        parts,
        first_dirty,
        end,
        sum(segment.size for segment in parts if segment.base_offset < first_dirty),
        sum(segment.size for segment in dirty_parts),
        _is_overdue(dirty_parts, config.max_compaction_lag_ms, now_ms),
    )


def _old_enough(segments: Sequence[Segment], dirty: int, latest_ms: int) -> int:
    for number, segment in enumerate(segments[dirty:], dirty):
        if segment.largest_timestamp(block=True) > latest_ms:
            return number
    return len(segments)


def _is_overdue(dirty: Sequence[Segment], lag_ms: int, now_ms: int) -> bool:
    if lag_ms == LONG_MAX:
        return False
    return any(0 < _first_timestamp(segment) < now_ms - lag_ms for segment in dirty)


def _first_timestamp(segment: Segment) -> int:
    if segment.first_timestamp is None and segment.size:
        header, _ = next(segment.headers(0, segment.size))
        segment.first_timestamp = header.max_timestamp
    return segment.first_timestamp or 0


def fits(copy: Segment, added: Segment, following: int, config: LogConfig) -> bool:
    """Whether what remains of a segment is sure to fit into a copy, up to offset ``following``."""
    if following - 1 - copy.base_offset > RELATIVE_OFFSET_MAX:
        return False
    # The copy may need a batch without records at its end.
    if copy.size + added.size + HEADER_BYTES > config.segment_bytes:
        return False
    entries = len(copy.offset_index(block=True)) + len(added.offset_index(block=True))
    times = len(copy.time_index(block=True)) + len(added.time_index(block=True))
    return max(entries * 8, times * 12) <= config.segment_index_bytes
