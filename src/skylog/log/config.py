"""The settings of one local log, under Kafka's topic-setting names, and of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Self

from skylog.kernel.limits import LOG_OPEN_FILES_MAX

LONG_MAX: Final = 2**63 - 1
# A local limit that is the same as the total one.
_AS_TOTAL: Final = -2


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
    local_retention_ms: int = _AS_TOTAL
    local_retention_bytes: int = _AS_TOTAL
    remote_storage_enable: bool = False
    remote_log_copy_disable: bool = False
    # How far copying lags behind; 0: not at all, -1: as far as the local limits allow.
    remote_copy_lag_ms: int = 0
    remote_copy_lag_bytes: int = -1
    remote_log_delete_on_disable: bool = False
    # Whether a part of the log may be in the object store only: the broker and the topic allow it,
    # and the topic is of a kind that can.
    remote: bool = False
    # Of a diskless topic with remote segments: whether its leader makes them from WAL objects, or a
    # job outside the brokers does.
    tiering_assembler: str = "broker"
    # With fewer in-sync replicas nothing is committed.
    min_insync_replicas: int = 1
    # A broker setting in Kafka; every log needs it.
    producer_id_expiration_ms: int = 24 * 3_600_000

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """The log's part of a topic's settings, typed or still text."""
        known: dict[str, object] = {}
        for each in fields(cls):
            value = values.get(each.name.replace("_", "."))
            if value is None:
                continue
            if each.name == "cleanup_policy":
                known[each.name] = _policies(value)
            elif each.type == "bool":
                known[each.name] = str(value).lower() == "true"
            elif each.name == "min_cleanable_dirty_ratio":
                known[each.name] = float(str(value))
            elif each.type == "str":
                known[each.name] = str(value)
            else:
                known[each.name] = int(str(value))
        return cls(**known)  # type: ignore[arg-type]

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def copies(self) -> bool:
        """Whether closed segments are copied to the object store: only then do the local limits
        hold, and a segment stays until it was copied."""
        return self.remote and not self.remote_log_copy_disable

    @property
    def deletes_segments(self) -> bool:
        """Whether segments are deleted by age and size. An empty policy keeps records for ever,
        but not on this disk."""
        return self.deletes or (self.copies and not self.compacts)

    @property
    def kept_ms(self) -> int:
        """How long segments stay on this disk; −1 is for ever."""
        own = self.local_retention_ms
        return own if self.copies and own != _AS_TOTAL else self.retention_ms

    @property
    def kept_bytes(self) -> int:
        """How much stays on this disk; −1 is everything."""
        own = self.local_retention_bytes
        return own if self.copies and own != _AS_TOTAL else self.retention_bytes

    @property
    def segment_ms_max(self) -> int:
        """Compaction only touches rolled segments, so its deadline rolls them too."""
        if self.compacts and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


def _policies(value: object) -> frozenset[str]:
    items = value.split(",") if isinstance(value, str) else value
    return frozenset(str(item).strip() for item in items if str(item).strip())  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """The intervals of the background steps; names and defaults are Kafka's."""

    default: LogConfig = field(default_factory=LogConfig)
    retention_check_interval_ms: int = 300_000
    flush_scheduler_interval_ms: int = LONG_MAX
    flush_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    open_files_max: int = LOG_OPEN_FILES_MAX
