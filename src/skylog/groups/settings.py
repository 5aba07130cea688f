"""Operator settings of groups and committed offsets, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's defaults; each field's comment is its key in ``server.properties``."""

    session_timeout_ms_min: int = 6_000  # group.min.session.timeout.ms
    session_timeout_ms_max: int = 1_800_000  # group.max.session.timeout.ms
    new_member_join_timeout_ms: int = 300_000  # not a setting in Kafka either
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    group_size_max: int = 2**31 - 1  # group.max.size
    offset_metadata_length_max: int = 4_096  # offset.metadata.max.bytes
    offsets_retention_ms: int = 10_080 * 60_000  # offsets.retention.minutes
    offsets_check_interval_ms: int = 600_000  # offsets.retention.check.interval.ms
    write_timeout_ms: int = 5_000  # offsets.commit.timeout.ms
    offsets_topic_partitions: int = 50  # offsets.topic.num.partitions
    # Groups of the consumer protocol.
    consumer_group_size_max: int = 2**31 - 1  # group.consumer.max.size
    consumer_assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors
    migration_policy: str = "bidirectional"  # group.consumer.migration.policy
    regex_refresh_interval_ms: int = 600_000  # group.consumer.regex.refresh.interval.ms
