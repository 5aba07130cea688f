"""How much of the backlog one micro-batch reads: Spark's rate limits for Kafka.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from skylog.client.metadata import TopicPartition
from skylog.spark.positions import Offsets


def available(start: Offsets, latest: Offsets, earliest: Mapping[TopicPartition, int]) -> int:
    """How many offsets are waiting; ``earliest`` has the start of new partitions."""
    return sum(_sizes(start, latest, earliest).values())


def rate_limit(
    most: int, start: Offsets, latest: Offsets, earliest: Mapping[TopicPartition, int]
) -> Offsets:
    """Share ``most`` offsets among the partitions in proportion to their backlogs.

    No partition starves: one with a backlog gets at least one offset.
    """
    sizes = _sizes(start, latest, earliest)
    total = sum(sizes.values())
    if total <= most:
        return dict(latest)
    limited = dict(latest)
    for key, size in sizes.items():
        share = most * size / total
        granted = math.ceil(share) if share < 1 else math.floor(share)
        begin = latest[key] - size
        limited[key] = min(latest[key], begin + granted)
    return limited


def _sizes(
    start: Offsets, latest: Offsets, earliest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    found = {}
    for key, end in latest.items():
        begin = start.get(key, earliest.get(key, end))
        if end > begin:
            found[key] = end - begin
    return found


class TriggerDelay:
    """``minOffsetsPerTrigger``: wait for enough to do, but not longer than ``maxTriggerDelay``."""

    def __init__(self, least: int, delay_ms_max: int) -> None:
        self._least = least
        self._delay_ms_max = delay_ms_max
        self._last_ms: int | None = None

    def holds_back(self, waiting: int, now_ms: int) -> bool:
        """Whether to skip this trigger; the first one is never skipped."""
        late = self._last_ms is None or now_ms - self._last_ms >= self._delay_ms_max
        if not late and waiting < self._least:
            return True
        self._last_ms = now_ms
        return False
