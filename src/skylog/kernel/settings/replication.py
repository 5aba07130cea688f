"""Settings of replication between brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skylog.kernel.settings.fields import setting

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """Replication between brokers, and leader election."""

    lag_ms_max: int = setting(
        "replica.lag.time.max.ms",
        "A follower that has not caught up for this long leaves the in-sync replicas.",
    )
    fetchers: int = setting(
        "num.replica.fetchers", "Connections with which a broker fetches from each other broker."
    )
    fetch_bytes_max: int = setting(
        "replica.fetch.max.bytes", "Bytes of one partition per fetch of a follower."
    )
    fetch_response_bytes_max: int = setting(
        "replica.fetch.response.max.bytes", "Bytes per fetch of a follower."
    )
    fetch_bytes_min: int = setting(
        "replica.fetch.min.bytes", "Bytes for which a follower's fetch waits at the leader."
    )
    fetch_wait_ms_max: int = setting(
        "replica.fetch.wait.max.ms", "Longest wait of a follower's fetch at the leader."
    )
    fetch_backoff_ms: int = setting(
        "replica.fetch.backoff.ms", "Pause before a partition is fetched again after an error."
    )
    selector: str | None = setting(
        "replica.selector.class",
        f"Empty: consumers read from leaders. {RACK_AWARE_SELECTOR}: from an in-sync replica in "
        f"the rack given by client.rack.",
    )
    leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable",
        "Whether the controller returns leadership to preferred leaders.",
    )
    leader_check_interval_seconds: int = setting(
        "leader.imbalance.check.interval.seconds",
        "Interval of checks for partitions that are not led by their preferred replica.",
    )
    unclean_election_interval_ms: int = setting(
        "unclean.leader.election.interval.ms",
        "Interval of checks for partitions that need an unclean election.",
    )
    quota_window_count: int = setting(
        "replication.quota.window.num",
        "Samples over which the rate of throttled replicas is measured.",
    )
    quota_window_seconds: int = setting(
        "replication.quota.window.size.seconds", "Length of one such sample."
    )
