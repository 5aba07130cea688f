"""When to roll a segment: by size, by time, or because its indexes are full."""

from __future__ import annotations

from zlib import crc32

from skylog.log.config import LogConfig
from skylog.log.segment import RELATIVE_OFFSET_MAX, Segment


def must_roll(
    segment: Segment,
    config: LogConfig,
    added_bytes: int,
    last_offset: int,
    timestamp: int,
    now_ms: int,
) -> bool:
    """Whether batches with these properties belong in a new segment."""
    size = segment.size
    if size + added_bytes > config.segment_bytes:
        return True
    if size:
        first = segment.first_timestamp
        # The records' own timestamps count if they have any.
        if first is not None and first >= 0:
            waited_ms = timestamp - first
        else:
            waited_ms = now_ms - segment.created_ms
        if waited_ms > config.segment_ms_max - jitter_ms(segment, config):
            return True
    return last_offset - segment.base_offset > RELATIVE_OFFSET_MAX or segment.indexes_are_full


def jitter_ms(segment: Segment, config: LogConfig) -> int:
    """Spreads the rolls of many partitions; a segment always gets the same delay."""
    if config.segment_jitter_ms <= 0:
        return 0
    return crc32(segment.prefix.encode()) % max(1, min(config.segment_jitter_ms, config.segment_ms))
