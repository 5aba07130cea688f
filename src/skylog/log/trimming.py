"""Moves the start of a log: up by DeleteRecords and by retention, never back.

A log whose first part may be in the object store only has two: the log start, and where it starts
on this disk. Retention moves the latter while segments are copied, both otherwise; DeleteRecords
moves the log start, and the local one if it passes it.

``retention.py`` decides which segments to delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.files import storage_error
from skylog.log.retention import deletable_segments
from skylog.log.segment import Segment

if TYPE_CHECKING:
    from skylog.log.log import Log


class Trimming:
    """Moves the start of one log."""

    __slots__ = ("_log",)

    def __init__(self, log: Log) -> None:
        self._log = log

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start to ``offset``; returns the start, which never decreases."""
        log = self._log
        if offset > log.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is above the high watermark {log.high_watermark}",
            )
        self._move_start(offset)
        return log.log_start_offset

    def _move_start(self, offset: int) -> None:
        log = self._log
        if offset <= log.log_start_offset:
            return
        self._move_local_start(offset)
        log.log_start_offset = offset
        log.start_known()
        log.high_watermark = max(log.high_watermark, offset)
        # Leader epochs are cut here only: those of the remote part are needed to find it.
        log.companions.truncate_start(offset)
        log.host.start_moved(log)

    def _move_local_start(self, offset: int) -> None:
        self._log.local_log_start_offset = max(self._log.local_log_start_offset, offset)

    def forget_remote(self) -> None:
        """Nothing of the log is remote any more: it begins where it does on this disk."""
        log = self._log
        log.highest_remote_offset, log.remote_end = -1, 0
        self._move_start(log.local_log_start_offset)
        log.start_known()

    def follow_start(self, offset: int) -> bool:
        """Take the leader's log start, as far as it is committed here; False if it is not above
        the own one. A follower that does not know its own takes a lower one, too."""
        log = self._log
        if log.config.remote and not log.knows_start and offset >= 0:
            self.learn_start(offset)
        if offset <= log.log_start_offset:
            return False
        self.delete_records_before(min(offset, log.high_watermark))
        return True

    def learn_start(self, offset: int) -> None:
        """The log start of a log that did not know it: not above what it took for it."""
        log = self._log
        log.log_start_offset = min(log.log_start_offset, offset)
        log.start_known()
        log.host.start_moved(log)

    def delete_old_segments(self, now_ms: int) -> int:
        """One pass of retention; returns the number of deleted segments."""
        log = self._log
        segments = log.segments
        if log.is_offline or (len(segments) == 1 and not segments[0].size):
            return 0
        if log.config.copies and not log.knows_start:
            return 0  # it would be written down as it is
        if log.config.copies and log.durability.recovery_point < segments[-1].base_offset:
            log.host.rolled(log)  # a sync was put off, and nothing goes before it
        try:
            count, rolls = deletable_segments(log, now_ms)
            if rolls or count == len(segments):
                log.appender.roll(log.log_end_offset, now_ms)
            if count:
                self._drop_first(count)
        except OSError as error:
            raise storage_error(f"retention of {log.directory} failed", error) from error
        return count

    def _drop_first(self, count: int) -> None:
        log = self._log
        start = log.segments[count].base_offset
        # First the start, then the segments: whoever sees them gone knows from where on they are.
        if log.config.copies:
            log.host.pin_start(log)
            log.snapshots.keep(start)
            self._move_local_start(start)
        else:
            self._move_start(start)
            log.host.pin_start(log)
        gone, log.segments = log.segments[:count], log.segments[count:]
        # Only now: records that are deleted but still in a file must be synced with it, or a power
        # failure leaves a file that cannot be opened.
        log.durability.recovery_point = max(log.durability.recovery_point, start)
        log.show()
        self.discard(gone)

    def discard(self, segments: Sequence[Segment]) -> None:
        """Rename the files of segments as deleted, to be removed later. Raises OSError."""
        log = self._log
        paths: list[str] = []
        for segment in segments:
            paths += segment.rename_deleted()
            paths += log.snapshots.rename_deleted(segment)
        log.host.discard(log, paths)
