"""Which remote segments of a partition are to go, and when to look again. Pure.

Kafka's rules, over the segments in the order of their epochs and offsets; the walk ends at the
first one within the leader's lineage that stays:

- what is being deleted already is deleted again;
- a segment that ends below the log start goes, if its epochs are not above the first one;
- within the lineage a segment goes if its largest timestamp is older than ``retention.ms``, or if
  it fits into what the whole log (local bytes and finished remote ones) has above
  ``retention.bytes``;
- a segment that is being copied ends the walk.

Besides, segments of epochs below the leader's earliest go: they belong to no lineage any more.
Kafka goes by epochs alone. Here each of their offsets at or above the log start must be readable
without them: epochs that were lost must not look like epochs that have ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skylog.tiered.segments import RemoteSegment, SegmentState

if TYPE_CHECKING:
    from skylog.log.config import LogConfig
    from skylog.tiered.lineage import Lineage
    from skylog.tiered.metadata.machine import RemoteLog

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class Limits:
    """``retention.ms`` and ``retention.bytes``; −1 is no limit."""

    retention_ms: int = UNLIMITED
    retention_bytes: int = UNLIMITED

    @classmethod
    def of(cls, config: LogConfig) -> Limits:
        return cls(config.retention_ms, config.retention_bytes) if config.deletes else cls()


@dataclass(frozen=True, slots=True)
class LocalPart:
    """What the leader has itself."""

    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int
    # Bytes of segments that are not remote.
    only_local_bytes: int


@dataclass(slots=True)
class Expiry:
    """What is to be done: first the log start is moved, then the segments go, in this order."""

    log_start_offset: int
    segments: list[RemoteSegment] = field(default_factory=list)
    # When age makes the next segment go; None: never by itself.
    due_ms: int | None = None


def expired(
    remote: RemoteLog, lineage: Lineage, local: LocalPart, limits: Limits, now_ms: int
) -> Expiry:
    """What is being deleted goes in any case. Nothing else does while the leader's lineage does not
    reach down to the log start: then it has lost epochs, and cannot tell what is its own."""
    expiry = Expiry(local.log_start_offset)
    expiry.segments += [
        segment for segment in remote.unfinished() if segment.state is SegmentState.DELETE_STARTED
    ]
    first = next(lineage.oldest_first(), None)
    if first is not None and first.start <= local.log_start_offset:
        _Walk(remote, lineage, local, limits, now_ms, expiry).run()
        _add_unreferenced(remote, lineage, local, expiry)
    return expiry


class _Walk:
    """One pass over the segments in the order of their epochs."""

    def __init__(
        self,
        remote: RemoteLog,
        lineage: Lineage,
        local: LocalPart,
        limits: Limits,
        now_ms: int,
        expiry: Expiry,
    ) -> None:
        self._remote = remote
        self._lineage = lineage
        self._local = local
        self._limits = limits
        self._now_ms = now_ms
        self._expiry = expiry
        self._seen: set[bytes] = {segment.id for segment in expiry.segments}
        self._excess = 0
        if limits.retention_bytes >= 0:
            total = local.only_local_bytes + finished_bytes(remote, lineage)
            self._excess = max(0, total - limits.retention_bytes)

    def run(self) -> None:
        for run in self._lineage.oldest_first():
            for segment in self._remote.segments(run.epoch):
                if segment.id in self._seen:
                    continue
                self._seen.add(segment.id)
                if not self._goes_on(segment):
                    return

    def _goes_on(self, segment: RemoteSegment) -> bool:
        """Take the segment if it is to go; False if it ends the walk."""
        if segment.state is SegmentState.COPY_STARTED:
            return False
        if self._is_below_start(segment):
            # It is no part of what the log has too much of: that would take records instead which
            # the limit keeps (Kafka's expiry does).
            self._excess = max(0, self._excess - segment.size)
            self._expiry.segments.append(segment)
            return True
        if not self._lineage.contains(segment):
            return True
        if not (self._is_old(segment) or self._is_excess(segment)):
            if self._limits.retention_ms >= 0:
                self._expiry.due_ms = segment.max_timestamp_ms + self._limits.retention_ms
            return False
        self._expiry.segments.append(segment)
        start = max(self._expiry.log_start_offset, segment.end_offset + 1)
        self._expiry.log_start_offset = start
        return True

    def _is_below_start(self, segment: RemoteSegment) -> bool:
        return segment.end_offset < self._local.log_start_offset and all(
            epoch <= self._lineage.earliest_epoch for epoch, _ in segment.epochs
        )

    def _is_old(self, segment: RemoteSegment) -> bool:
        retention_ms = self._limits.retention_ms
        if retention_ms < 0 or segment.max_timestamp_ms > self._now_ms - retention_ms:
            return False
        self._excess = max(0, self._excess - segment.size)
        return True

    def _is_excess(self, segment: RemoteSegment) -> bool:
        if not 0 < self._excess >= segment.size:
            return False
        self._excess -= segment.size
        return True


def finished_bytes(remote: RemoteLog, lineage: Lineage) -> int:
    """The size of the finished segments within a lineage. Of those that overlap only the first
    counts: what is there twice must not make retention take what its limit keeps."""
    is_whole = all(_is_within(epoch, remote, lineage) for epoch in remote.epochs())
    if is_whole and not remote.has_overlaps:
        return remote.finished_bytes
    total = end = 0
    for segment in remote.all():
        is_counted = segment.start_offset >= end and segment.state is SegmentState.COPY_FINISHED
        if is_counted and lineage.contains(segment):
            total += segment.size
            end = segment.end_offset + 1
    return total


def _is_within(epoch: int, remote: RemoteLog, lineage: Lineage) -> bool:
    """Whether all that was copied of an epoch is part of the lineage."""
    highest = remote.highest_offset(epoch)
    return highest is not None and lineage.epoch_of(highest) == epoch


def _add_unreferenced(
    remote: RemoteLog, lineage: Lineage, local: LocalPart, expiry: Expiry
) -> None:
    earliest = lineage.earliest_epoch
    taken = {segment.id for segment in expiry.segments}
    for epoch in remote.epochs():
        if epoch >= earliest:
            break
        for segment in remote.segments(epoch):
            if segment.id in taken or segment.state is not SegmentState.COPY_FINISHED:
                continue
            taken.add(segment.id)
            if segment.epochs[-1][0] < earliest and is_readable_without(
                segment, remote, lineage, local
            ):
                expiry.segments.append(segment)


def is_readable_without(
    segment: RemoteSegment, remote: RemoteLog, lineage: Lineage, local: LocalPart
) -> bool:
    """Whether a reader finds all its offsets from the log start on elsewhere. A segment of epochs
    that the lineage does not have is never among those that cover it."""
    at = max(segment.start_offset, local.log_start_offset)
    while at <= segment.end_offset:
        if at >= local.local_log_start_offset:
            # A log that ends before may have lost what was copied.
            return segment.end_offset < local.log_end_offset
        end = remote.covered_end(at, lineage)
        if end <= at:
            return False
        at = end
    return True
