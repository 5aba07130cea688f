"""What tiered storage counts."""

from __future__ import annotations

from skylog.kernel.clock import SystemClock
from skylog.tiered.counts import PartitionSizes, TieredCounts


def test_sizes_of_partitions_add_up_by_topic() -> None:
    counts = TieredCounts(SystemClock())
    counts.looked_at("a", 0, PartitionSizes(copy_lag_bytes=5, copy_lag_segments=1, size_bytes=7))
    counts.looked_at("a", 1, PartitionSizes(copy_lag_bytes=2, segments=3))
    counts.looked_at("b", 0, PartitionSizes(size_bytes=9))
    counts.looked_at("b", 0, PartitionSizes(size_bytes=1))

    assert counts.by_topic() == {
        "a": PartitionSizes(copy_lag_bytes=7, copy_lag_segments=1, segments=3, size_bytes=7),
        "b": PartitionSizes(size_bytes=1),
    }


def test_a_partition_led_elsewhere_and_a_deleted_topic_count_no_more() -> None:
    counts = TieredCounts(SystemClock())
    for partition in range(2):
        counts.looked_at("a", partition, PartitionSizes(segments=1))
    counts.looked_at("b", 0, PartitionSizes(segments=1))
    counts.of("a").copy_bytes += 5

    counts.no_longer_led("a", 1)
    assert counts.by_topic()["a"].segments == 1
    counts.forget("a")
    assert counts.by_topic().keys() == {"b"}
    assert counts.of("a").copy_bytes == 0


def test_waits_keep_their_longest() -> None:
    waits = TieredCounts(SystemClock()).copy_throttle
    waits.waited(0.5)
    waits.waited(2.0)
    waits.waited(1.0)
    assert (waits.count, waits.seconds, waits.seconds_max) == (3, 3.5, 2.0)
