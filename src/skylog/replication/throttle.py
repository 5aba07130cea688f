"""Throttled replication (replica moves), which must leave bandwidth for clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skylog.kernel.clock import Clock
from skylog.kernel.rates import Rate

UNLIMITED: Final = 2**63 - 1
ALL_REPLICAS: Final = "*"


def throttled_partitions(text: str, node_id: int) -> frozenset[int] | None:
    """The partitions that ``partition:broker,…`` lists for a broker; None for all of the
    topic's."""
    if text.strip() == ALL_REPLICAS:
        return None
    pairs = (entry.strip().split(":") for entry in text.split(",") if entry.strip())
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == node_id)


class ReplicationQuota:
    """The rate limit for sending, or for fetching, throttled replicas."""

    def __init__(self, samples: int, window_ms: int, clock: Clock) -> None:
        self._clock = clock
        self._rate = Rate(samples, window_ms)
        self._bytes_per_second = UNLIMITED
        self._topics: Mapping[str, frozenset[int] | None] = {}

    def update(self, bytes_per_second: int, topics: Mapping[str, frozenset[int] | None]) -> None:
        """Set the rate, and the throttled partitions of each topic (None for all)."""
        self._bytes_per_second = bytes_per_second
        self._topics = topics

    @property
    def topics(self) -> Mapping[str, frozenset[int] | None]:
        return self._topics

    def is_throttled(self, topic: str, index: int) -> bool:
        if topic not in self._topics:
            return False
        partitions = self._topics[topic]
        return partitions is None or index in partitions

    @property
    def exceeded(self) -> bool:
        if self._bytes_per_second >= UNLIMITED:
            return False
        return self._rate.measure(self._clock.now_ms()) > self._bytes_per_second

    def record(self, topic: str, index: int, size: int) -> None:
        """Count bytes of a partition, if it is throttled."""
        if size and self.is_throttled(topic, index):
            self._rate.record(size, self._clock.now_ms())
