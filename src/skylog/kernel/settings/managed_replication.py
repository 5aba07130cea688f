"""Settings of replicas that the controller manages by itself, and of how zones are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.fields import setting

LISTENER_MAP: Final = "diskless.client.az.listener.map"
# name, type, default, allowed values, importance, how it may change while brokers run, internal.
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
    """Replicas of diskless partitions: how the controller replaces those that are offline."""

    batch_size: int = setting(
        "diskless.reassignment.batch.size",
        "Diskless partitions whose offline replicas are replaced at once.",
    )
    interval_ms: int = setting(
        "diskless.reassignment.interval.ms", "Time between two such batches at least."
    )
    scan_interval_ms: int = setting(
        "diskless.reassignment.scan.interval.ms",
        "Time after which the controller looks for offline replicas though nothing has happened.",
    )
    grace_ms: int = setting(
        "diskless.reassignment.grace.ms",
        "Time for which a broker may be away before its diskless replicas go to others;"
        " where no other replica is alive, one may go at once.",
    )
    settle_ms: int = setting(
        "diskless.reassignment.settle.ms",
        "Quiet time after the registration of a new broker before partitions of brokers that are"
        " not registered are placed anew, one replica per rack.",
    )
    warning_interval_ms: int = setting(
        "diskless.placement.warning.interval.ms",
        "Time between two warnings of diskless partitions with several replicas in one rack, and"
        " of topics with a single replica.",
    )
    listener_map: str = setting(
        LISTENER_MAP,
        "Zones of clients by the listener that they use, as LISTENER=zone,LISTENER=zone; a zone"
        " in client.id (diskless_az=zone) goes first.",
    )

    @property
    def zone_by_listener(self) -> Mapping[str, str]:
        """Listener names, in capitals, to the zones of their clients; ConfigError."""
        found: dict[str, str] = {}
        for pair in filter(None, (part.strip() for part in self.listener_map.split(","))):
            listener, _, zone = (part.strip() for part in pair.partition("="))
            if not listener or not zone or listener.upper() in found:
                raise ConfigError(
                    f"Invalid value {self.listener_map} for configuration {LISTENER_MAP}: {pair} "
                    "is not LISTENER=zone, or names a listener again"
                )
            found[listener.upper()] = zone
        return found
