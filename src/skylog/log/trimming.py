"""Moves the start of a log: up by DeleteRecords and by retention, never back.

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
        log.log_start_offset = offset
        log.high_watermark = max(log.high_watermark, offset)
        log.durability.recovery_point = max(log.durability.recovery_point, offset)
        log.companions.truncate_start(offset)
        log.host.start_moved(log)

    def delete_old_segments(self, now_ms: int) -> int:
        """One pass of retention; returns the number of deleted segments."""
        log = self._log
        segments = log.segments
        if log.is_offline or (len(segments) == 1 and not segments[0].size):
            return 0
        try:
            count = deletable_segments(
                segments,
                log.config,
                log.log_start_offset,
                log.log_end_offset,
                log.high_watermark,
                now_ms,
            )
            if count == len(segments):
                log.appender.roll(log.log_end_offset, now_ms)
            if count:
                self._drop_first(count)
        except OSError as error:
            raise storage_error(f"retention of {log.directory} failed", error) from error
        return count

    def _drop_first(self, count: int) -> None:
        log = self._log
        gone, log.segments = log.segments[:count], log.segments[count:]
        log.show()
        self._move_start(log.segments[0].base_offset)
        self.discard(gone)

    def discard(self, segments: Sequence[Segment]) -> None:
        """Rename the files of segments as deleted, to be removed later. Raises OSError."""
        log = self._log
        paths: list[str] = []
        for segment in segments:
            paths += segment.rename_deleted()
            paths += log.snapshots.rename_deleted(segment)
        log.host.discard(log, paths)
