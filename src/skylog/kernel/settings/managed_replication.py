"""Settings of replicas that the controller manages, and of client zones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.fields import setting

LISTENER_MAP: Final = "diskless.client.az.listener.map"
# name, type, default, allowed values, importance, how it may change at run time, internal.
FACTS: Final[tuple[tuple[str, str, str | None, str, str, str, bool], ...]] = (
    *(
        (name, kind, default, allowed, "MEDIUM", "cluster-wide", False)
        for name, kind, default, allowed in (
            ("diskless.reassignment.batch.size", "INT", "500", "[1,...,5000]"),
            ("diskless.reassignment.interval.ms", "LONG", "1000", "[1,...]"),
            ("diskless.reassignment.scan.interval.ms", "LONG", "60000", "[1,...]"),
            ("diskless.reassignment.grace.ms", "LONG", "60000", "[0,...]"),
            ("diskless.reassignment.settle.ms", "LONG", "30000", "[0,...]"),
            ("diskless.placement.warning.interval.ms", "LONG", "600000", "[1,...]"),
        )
    ),
    (LISTENER_MAP, "STRING", "", "", "MEDIUM", "read-only", False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedReplicationSettings:
    """Replicas of diskless partitions: how the controller replaces offline ones."""

    batch_size: int = setting(
        "diskless.reassignment.batch.size",
        "Diskless partitions whose offline replicas are replaced in one batch.",
    )
    interval_ms: int = setting(
        "diskless.reassignment.interval.ms", "Minimum time between two such batches."
    )
    scan_interval_ms: int = setting(
        "diskless.reassignment.scan.interval.ms",
        "Interval of the controller's scans for offline replicas.",
    )
    grace_ms: int = setting(
        "diskless.reassignment.grace.ms",
        "How long a broker may be down before its diskless replicas move to others; if no other "
        "replica is alive, one may move at once.",
    )
    settle_ms: int = setting(
        "diskless.reassignment.settle.ms",
        "Time since the last registration of a new broker before partitions of unregistered "
        "brokers are placed again, one replica per rack.",
    )
    warning_interval_ms: int = setting(
        "diskless.placement.warning.interval.ms",
        "Interval of warnings about diskless partitions with several replicas in one rack, and"
        " of topics with a single replica.",
    )
    listener_map: str = setting(
        LISTENER_MAP,
        "Zones of clients by the listener that they use, as LISTENER=zone,LISTENER=zone; a zone"
        " in client.id (diskless_az=zone) takes precedence.",
    )

    @property
    def zone_by_listener(self) -> Mapping[str, str]:
        """Upper-case listener names to the zones of their clients; ConfigError."""
        found: dict[str, str] = {}
        for pair in filter(None, (part.strip() for part in self.listener_map.split(","))):
            listener, _, zone = (part.strip() for part in pair.partition("="))
            if not listener or not zone or listener.upper() in found:
                raise ConfigError(
                    f"Invalid value {self.listener_map} for configuration {LISTENER_MAP}: {pair} "
                    "is not LISTENER=zone, or repeats a listener"
                )
            found[listener.upper()] = zone
        return found
