"""Which snapshots of the metadata log may be deleted. Pure.

As in Kafka: the oldest snapshot is deleted, with the log before the next one, while all together
exceed ``metadata.max.retention.bytes`` or the oldest exceeds ``metadata.max.retention.ms``. The
latest always stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skylog.quorum.snapshots import SnapshotId

_DAY_MS: Final = 24 * 3_600_000
_NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class KnownSnapshot:
    """A snapshot on disk; the timestamp is that of the last record in it."""

    id: SnapshotId
    size: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Retention:
    """The two limits; a negative one means no limit."""

    bytes_max: int = 100 * 1024 * 1024
    age_ms_max: int = 7 * _DAY_MS

    def first_kept(
        self, snapshots: Sequence[KnownSnapshot], log_bytes: int, now_ms: int
    ) -> SnapshotId | None:
        """The oldest snapshot to keep, given in ascending order; None if all are kept."""
        total = log_bytes + sum(snapshot.size for snapshot in snapshots)
        kept = 0
        for index, snapshot in enumerate(snapshots[:-1]):
            too_much = self.bytes_max > _NO_LIMIT and total > self.bytes_max
            too_old = self.age_ms_max > _NO_LIMIT and now_ms - snapshot.timestamp > self.age_ms_max
            if not (too_much or too_old):
                break
            total -= snapshot.size
            kept = index + 1
        return snapshots[kept].id if kept else None
