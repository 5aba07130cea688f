"""The settings of one local log, under Kafka's topic-setting names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Self

LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Values are validated where they are set; defaults are Kafka's."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = 24 * 3_600_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    # With fewer in-sync replicas nothing is committed.
    min_insync_replicas: int = 1
    # A broker setting in Kafka; every log needs it.
    producer_id_expiration_ms: int = 24 * 3_600_000

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """The log's part of a topic's settings, typed or still text."""
        known: dict[str, object] = {}
        for field in fields(cls):
            value = values.get(field.name.replace("_", "."))
            if value is None:
                continue
            if field.name == "cleanup_policy":
                known[field.name] = _policies(value)
            elif field.name == "min_cleanable_dirty_ratio":
                known[field.name] = float(str(value))
            else:
                known[field.name] = int(str(value))
        return cls(**known)  # type: ignore[arg-type]

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def segment_ms_max(self) -> int:
        """Compaction only touches rolled segments, so its deadline rolls them too."""
        if self.compacts and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


def _policies(value: object) -> frozenset[str]:
    items = value.split(",") if isinstance(value, str) else value
    return frozenset(str(item).strip() for item in items if str(item).strip())  # type: ignore[attr-defined]
