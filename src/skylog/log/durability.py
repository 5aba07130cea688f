"""Syncing a log: below the recovery point nothing can be lost.

After a crash, everything from the recovery point on is read and its checksums are verified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.log.segment import Segment, slot_of

if TYPE_CHECKING:
    from skylog.log.log import Log


class Durability:
    """Syncs one log. These calls block: one executor thread at a time may use them."""

    __slots__ = ("_log", "directory_unsynced", "flushed_ms", "recovery_point")

    def __init__(self, log: Log) -> None:
        self._log = log
        self.recovery_point = 0
        # When the ``flush.ms`` period began.
        self.flushed_ms = 0
        # A new file is durable only once its directory is.
        self.directory_unsynced = True

    def begin(self, recovery_point: int, now_ms: int) -> None:
        """The log was opened."""
        self.recovery_point = recovery_point
        self.flushed_ms = now_ms

    def truncated_to(self, end: int) -> None:
        self.recovery_point = min(self.recovery_point, end)
        self.directory_unsynced = True

    def sync(self) -> None:
        """Make everything appended so far durable.

        A failure is final: after it the kernel may report success for bytes it has dropped.
        """
        segments, _, end = self._log.shown
        self._sync(segments, end)

    def sync_rolled(self) -> None:
        """Make all but the last segment durable, as after every roll."""
        segments = self._log.segments
        self._sync(segments, segments[-1].base_offset)

    def _sync(self, segments: list[Segment], end: int) -> None:
        """Sync up to ``end``: the log's end, or the start of its last segment."""
        log = self._log
        log.check_usable()
        first = slot_of(segments, self.recovery_point)
        try:
            for segment in segments[max(first - 1, 0) : -1]:
                if segment.indexes_unsynced:
                    segment.sync_indexes()
            log.snapshots.sync()
            if end <= self.recovery_point:
                return
            for segment in segments[first:]:
                if segment.base_offset < end:
                    segment.sync_log()
            if not log.companions.sync_epochs():
                return
            if self.directory_unsynced:
                self.directory_unsynced = False
                log.companions.sync_directory()
        except OSError as error:
            raise log.fail(f"sync of {log.directory} failed", error, ambiguous=True) from error
        self.recovery_point = max(self.recovery_point, end)

    def sync_indexes(self, segment: Segment) -> None:
        """Make a finished segment's indexes durable. If it raises OSError, the log is offline."""
        try:
            segment.sync_indexes()
        except OSError as error:
            self._log.fail(f"sync of {self._log.directory} failed", error)
            raise

    def sync_names(self) -> None:
        """Make the names of the log's files durable, after a swap."""
        log = self._log
        try:
            log.files.sync_directory(log.directory)
        except OSError as error:
            raise log.fail(f"sync of {log.directory} failed", error) from error
