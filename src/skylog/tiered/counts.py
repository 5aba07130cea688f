"""What tiered storage counts: manager, reader and followers add to it, ``/metrics`` reads it.

Per topic what Kafka's BrokerTopicMetrics counts, per partition what its gauges say, and stages with
the age of their last success. Nothing here decides anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skylog.kernel.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skylog.kernel.clock import Clock


class TopicCounts:
    """Totals of one topic since the broker started."""

    __slots__ = (
        "aux_state_errors",
        "aux_state_requests",
        "copy_bytes",
        "copy_errors",
        "copy_requests",
        "delete_errors",
        "delete_requests",
        "fetch_bytes",
        "fetch_errors",
        "fetch_requests",
    )

    def __init__(self) -> None:
        # Segments that a leader here began to copy, bytes of those that it finished, failures.
        self.copy_requests = 0
        self.copy_bytes = 0
        self.copy_errors = 0
        # Reads of remote segments for consumers, and the bytes that they gave.
        self.fetch_requests = 0
        self.fetch_bytes = 0
        self.fetch_errors = 0
        # Segments that a leader here began to delete, and failures.
        self.delete_requests = 0
        self.delete_errors = 0
        # Followers here that built their state from a remote segment, and failures.
        self.aux_state_requests = 0
        self.aux_state_errors = 0


class PartitionSizes(NamedTuple):
    """What the leader of a partition knew after its last look at it."""

    # Closed segments that may be copied and are not yet.
    copy_lag_bytes: int = 0
    copy_lag_segments: int = 0
    # Remote segments that are to go and are there yet.
    delete_lag_bytes: int = 0
    delete_lag_segments: int = 0
    # Remote segments in any state, and the bytes of those that are finished.
    segments: int = 0
    size_bytes: int = 0
    # How much of retention.bytes, and of local.retention.bytes, is used, in percent; 0 without one.
    retention_percent: int = 0
    local_retention_percent: int = 0


class Waits:
    """Times that something waited for a quota."""

    __slots__ = ("count", "seconds", "seconds_max")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.seconds_max = 0.0

    def waited(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        self.seconds_max = max(self.seconds_max, seconds)


class TieredCounts:
    """Totals of a broker; a topic that is deleted takes its own with it."""

    def __init__(self, clock: Clock) -> None:
        self.topics: dict[str, TopicCounts] = {}
        self.partitions: dict[tuple[str, int], PartitionSizes] = {}
        # One run: a segment copied; a partition expired; a remote read; a scan of the store.
        self.copy = Stage(clock)
        self.expire = Stage(clock)
        self.remote_read = Stage(clock)
        self.orphans = Stage(clock)
        # A pass over the diskless partitions that this broker leads, and how many of them keep
        # their WAL because a remote segment was not found as it should be.
        self.prune = Stage(clock)
        self.prunes_refused = 0
        # Reads of offsets at or above the log start that no remote segment covers.
        self.holes = 0
        # Answers of the store that were not what had been put there.
        self.corrupt = 0
        # Own records that a newer leader's had made void.
        self.void_records = 0
        self.orphans_deleted = 0
        # Reads, and searches for a timestamp, that were not done in time.
        self.fetches_expired = 0
        self.list_offsets_expired = 0
        # At the moment.
        self.copies_running = 0
        self.copy_throttle = Waits()
        self.fetch_throttle = Waits()

    def of(self, topic: str) -> TopicCounts:
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicCounts()
        return counts

    def looked_at(self, topic: str, partition: int, sizes: PartitionSizes) -> None:
        self.partitions[topic, partition] = sizes

    def no_longer_led(self, topic: str, partition: int) -> None:
        self.partitions.pop((topic, partition), None)

    def forget(self, topic: str) -> None:
        """The topic was deleted, or is not remote any more."""
        self.topics.pop(topic, None)
        for key in [key for key in self.partitions if key[0] == topic]:
            del self.partitions[key]

    def by_topic(self) -> Mapping[str, PartitionSizes]:
        """Sums of the partitions of each topic; called on another thread than the counting."""
        found: dict[str, list[PartitionSizes]] = {}
        for (topic, _), sizes in tuple(self.partitions.items()):
            found.setdefault(topic, []).append(sizes)
        return {topic: PartitionSizes(*_sums(sizes)) for topic, sizes in found.items()}

    def stages(self) -> dict[str, Stage]:
        return {
            "copy": self.copy,
            "expire": self.expire,
            "remote-read": self.remote_read,
            "orphans": self.orphans,
            "prune": self.prune,
        }


def _sums(sizes: list[PartitionSizes]) -> Iterator[int]:
    return map(sum, zip(*sizes, strict=True))
