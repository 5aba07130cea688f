"""Which segments ``cleanup.policy=delete`` deletes. Decides only."""

from __future__ import annotations

from collections.abc import Sequence

from skylog.log.config import LogConfig
from skylog.log.segment import Segment


def deletable_segments(
    segments: Sequence[Segment],
    config: LogConfig,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the first segments may be deleted: the last one too, unless it is empty.

    Nothing at or above the high watermark is deleted. Raises OSError if an index cannot be read.
    """
    ends = [segment.base_offset for segment in segments[1:]]
    # Moving the log start never deletes the last segment: new records go there.
    count = sum(end <= min(log_start_offset, high_watermark) for end in ends)
    if not config.deletes:
        return count
    if segments[-1].size:
        ends.append(log_end_offset)
    eligible = sum(end <= high_watermark for end in ends)
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes
        while count < eligible and excess >= segments[count].size:
            excess -= segments[count].size
            count += 1
    if config.retention_ms >= 0:
        while count < eligible and _is_expired(segments[count], config.retention_ms, now_ms):
            count += 1
    return count


def _is_expired(segment: Segment, retention_ms: int, now_ms: int) -> bool:
    return now_ms - segment.largest_timestamp(block=True) > retention_ms
