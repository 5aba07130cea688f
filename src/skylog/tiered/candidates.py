"""What a leader is to copy and to clean next, and since when it may. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.tiered.segments import RemoteSegment, SegmentState

if TYPE_CHECKING:
    from skylog.log.closed import ClosedSegment
    from skylog.tiered.lineage import Lineage
    from skylog.tiered.metadata.machine import RemoteLog

# Nothing but more records can make the next segment due.
WITH_MORE_RECORDS: Final = None


@dataclass(frozen=True, slots=True)
class CopyLag:
    """How long copying may lag behind (KIP-1241): a segment is copied once it is older than ``ms``,
    or more than ``bytes`` have followed it. 0: at once; −1: this says nothing."""

    ms: int = 0
    bytes: int = -1

    @property
    def is_off(self) -> bool:
        return self.ms == 0 or self.bytes == 0

    def due_ms(self, closed: ClosedSegment, bytes_behind: int, now_ms: int) -> int | None:
        """When a segment may be copied, as far as that is known; ``bytes_behind`` follow it."""
        if self.is_off or (0 < self.bytes <= bytes_behind):
            return now_ms
        if self.ms < 0:
            return WITH_MORE_RECORDS
        # A timestamp that lies ahead of us says nothing about age.
        return now_ms if closed.max_timestamp > now_ms else closed.max_timestamp + self.ms


def uncopied(
    closed: Sequence[ClosedSegment], remote: RemoteLog, lineage: Lineage, log_start_offset: int
) -> list[ClosedSegment]:
    """The closed segments with records, from the log start on, that finished segments of the
    lineage do not cover.

    Kafka takes what is behind its highest remote offset: there a gap would stay one.
    """
    found = []
    covered = -1
    for segment in closed:
        start = max(segment.base_offset, log_start_offset)
        if start >= segment.next_offset or segment.next_offset <= covered:
            continue
        covered = remote.covered_end(max(start, covered), lineage)
        if covered < segment.next_offset:
            found.append(segment)
            covered = -1
    return found


def abandoned(
    remote: RemoteLog, leader_epoch: int, failed: Collection[bytes] = ()
) -> list[RemoteSegment]:
    """Segments that leaders of lower epochs began to copy, and those of own sagas that ``failed``.

    They are cleaned only after a claim: until the leader's own epoch was read back, their copier
    may still finish them.
    """
    return [
        segment
        for segment in remote.unfinished()
        if segment.state is SegmentState.COPY_STARTED
        and (segment.copier_epoch < leader_epoch or segment.id in failed)
    ]
