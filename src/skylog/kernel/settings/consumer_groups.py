"""Settings of groups of the consumer protocol: the broker's, and those of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skylog.kernel.settings.fields import setting

ASSIGNORS: Final = ("uniform", "range")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings:
    """Consumer groups of the consumer protocol (KIP-848)."""

    protocols: tuple[str, ...] = setting(
        "group.coordinator.rebalance.protocols",
        "Protocols that groups may use. Share and streams groups are not supported.",
    )
    session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        "A member without a heartbeat for this long is removed from its group.",
    )
    session_timeout_ms_min: int = setting(
        "group.consumer.min.session.timeout.ms", "Smallest consumer.session.timeout.ms of a group."
    )
    session_timeout_ms_max: int = setting(
        "group.consumer.max.session.timeout.ms", "Largest consumer.session.timeout.ms of a group."
    )
    heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms", "How often members are told to send heartbeats."
    )
    heartbeat_interval_ms_min: int = setting(
        "group.consumer.min.heartbeat.interval.ms",
        "Smallest consumer.heartbeat.interval.ms of a group.",
    )
    heartbeat_interval_ms_max: int = setting(
        "group.consumer.max.heartbeat.interval.ms",
        "Largest consumer.heartbeat.interval.ms of a group.",
    )
    assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms", "Minimum time between two assignments of a group."
    )
    assignment_interval_ms_min: int = setting(
        "group.consumer.min.assignment.interval.ms",
        "Smallest consumer.assignment.interval.ms of a group.",
    )
    assignment_interval_ms_max: int = setting(
        "group.consumer.max.assignment.interval.ms",
        "Largest consumer.assignment.interval.ms of a group.",
    )
    size_max: int = setting("group.consumer.max.size", "Members that one group may have.")
    assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        "Assignors that members may ask for, out of uniform and range; the first is the default.",
    )
    migration_policy: str = setting(
        "group.consumer.migration.policy",
        "Whether a live group may change from the classic protocol, back to it, or both.",
    )
    regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms",
        "How often the topics that match a regular-expression subscription are refreshed.",
    )


GROUP_DOCS: Final[Mapping[str, str]] = {
    "consumer.session.timeout.ms": (
        "A member without a heartbeat for this long is removed from the group."
    ),
    "consumer.heartbeat.interval.ms": "How often members are told to send heartbeats.",
    "consumer.assignment.interval.ms": "Minimum time between two assignments.",
}
