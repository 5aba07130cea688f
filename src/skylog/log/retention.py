"""Which segments ``cleanup.policy=delete`` deletes. Decides only.

Of a log whose segments are copied to the object store, a segment goes from this disk only once all
up to its end is there, or the log start has passed it. The limits are then the local ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skylog.log.segment import Segment

if TYPE_CHECKING:
    from skylog.log.log import Log


class Verdict(NamedTuple):
    """How many of the first segments to delete."""

    deleted: int
    # The last segment is due too, but must be copied first: only a closed one can be.
    rolls: bool = False


def deletable_segments(log: Log, now_ms: int) -> Verdict:
    """The first segments of the log that may be deleted: the last one too, unless it is empty.

    Nothing at or above the high watermark is deleted. Raises OSError if an index cannot be read.
    """
    segments, config = log.segments, log.config
    ends = [segment.base_offset for segment in segments[1:]]
    # Moving the log start never deletes the last segment: new records go there.
    count = sum(end <= min(log.log_start_offset, log.high_watermark) for end in ends)
    if not config.deletes_segments:
        return Verdict(count)
    free = eligible = sum(end <= log.high_watermark for end in _with_last(log, ends))
    if config.copies:
        remote_end = max(log.remote_end, log.log_start_offset)
        # What stays must be durable: a log without segments does not know where it ended.
        bound = min(remote_end, log.durability.recovery_point)
        free = min(eligible, sum(end <= bound for end in ends))
    rolls = False
    if config.kept_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.kept_bytes
        while count < free and excess >= segments[count].size:
            excess -= segments[count].size
            count += 1
        rolls = config.copies and count == len(ends) < eligible and excess >= segments[-1].size
    if config.kept_ms >= 0:
        while count < free and _is_expired(segments[count], config.kept_ms, now_ms):
            count += 1
        if config.copies and count == len(ends) < eligible:
            rolls = rolls or _is_expired(segments[-1], config.kept_ms, now_ms)
    return Verdict(count, rolls)


def _with_last(log: Log, ends: list[int]) -> list[int]:
    return [*ends, log.log_end_offset] if log.segments[-1].size else ends


def _is_expired(segment: Segment, retention_ms: int, now_ms: int) -> bool:
    return now_ms - segment.largest_timestamp(block=True) > retention_ms
