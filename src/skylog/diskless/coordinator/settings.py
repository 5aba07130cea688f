"""The settings of a coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field

from skylog.diskless.rules.times import PlaneRules


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """``batch_bytes_max`` is the metadata topic's ``max.message.bytes``, ``sync`` the log's."""

    rules: PlaneRules = field(default_factory=PlaneRules)
    batch_bytes_max: int = 1_048_588
    # Bytes of log after which a snapshot is taken.
    snapshot_bytes: int = 20 * 1024 * 1024
    sync: bool = True
