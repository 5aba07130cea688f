"""The local log of one partition, whole: opening and closing, retention, truncation.

``reader.py`` has how it is read, ``writer.py`` how it is appended to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.files import storage_error
from skylog.log.host import LogHost
from skylog.log.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from skylog.log.reader import ReadInfo
from skylog.log.recovery import Opening, load
from skylog.log.retention import deletable_segments
from skylog.log.segment import Segment
from skylog.log.swap import CleanedSegment
from skylog.log.writer import AppendInfo, LogWriter

__all__ = ["AppendInfo", "Log", "LogConfig", "LogHost", "Opening", "ReadInfo"]


class Log(LogWriter):
    """A partition's batches in segments."""

    __slots__ = ()

    @classmethod
    def open(
        cls, topic: str, partition: int, opening: Opening, host: LogHost | None = None
    ) -> Self:
        """Open a partition's directory, which is created when it is not there."""
        Path(opening.directory).mkdir(parents=True, exist_ok=True)
        loaded = load(opening)
        log = cls(topic, partition, opening, loaded, host or LogHost(opening.files))
        log.write_companions()
        return log

    def close(self) -> None:
        """Leave the directory so that it can be opened without recovery. Blocks."""
        self._check_usable()
        self.write_companions()
        self._take_snapshot()
        self.sync()
        try:
            self._segments[-1].finish_indexes()
            self._sync_indexes(self._segments[-1])
        except OSError as error:
            raise storage_error(f"close of {self.directory} failed", error) from error
        self._files.forget_under(self.directory)

    def mark_deleted(self) -> None:
        """The partition is gone: whoever still holds the log learns it from the next call."""
        self._failure = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # -- the start -----------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to ``offset``; returns the start, which never goes back."""
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is above the high watermark {self.high_watermark}",
            )
        self._move_start(offset)
        return self.log_start_offset

    def _move_start(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.recovery_point = max(self.recovery_point, offset)
        if self._epochs.truncate_start(offset):
            self._epochs_unwritten = True
            self._host.unwritten(self)
        self._host.start_moved(self)

    def delete_old_segments(self, now_ms: int) -> int:
        """One pass of retention; returns how many segments went."""
        if self._failure is not None or (len(self._segments) == 1 and not self._segments[0].size):
            return 0
        try:
            count = deletable_segments(
                self._segments,
                self.config,
                self.log_start_offset,
                self._end,
                self.high_watermark,
                now_ms,
            )
            if count == len(self._segments):
                self._roll(self._end, now_ms)
            if count:
                self._drop_first(count)
        except OSError as error:
            raise storage_error(f"retention of {self.directory} failed", error) from error
        return count

    def _drop_first(self, count: int) -> None:
        gone = self._segments[:count]
        self._segments = self._segments[count:]
        self._show()
        self._move_start(self._segments[0].base_offset)
        self._discard(gone)

    def _discard(self, segments: Sequence[Segment]) -> None:
        paths: list[str] = []
        for segment in segments:
            paths += segment.rename_deleted()
            paths += self._rename_snapshot(segment)
        self._host.discard(self, paths)

    def _rename_snapshot(self, segment: Segment) -> list[str]:
        """Move the producers' state as of a segment's begin out of the way."""
        snapshot = f"{self.directory}/{file_name(segment.base_offset, SNAPSHOT_SUFFIX)}"
        try:
            self._files.rename(snapshot, snapshot + DELETED_SUFFIX)
        except FileNotFoundError:
            return []
        return [snapshot + DELETED_SUFFIX]

    def expire_producers(self, now_ms: int) -> int:
        return self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # -- compaction ----------------------------------------------------------------------------

    def replace_segments(self, old: Sequence[Segment], copy: CleanedSegment) -> bool:
        """Put a finished copy in the place of ``old``; False when they are not there any more."""
        self._check_usable()
        segments = self._segments
        first = next((n for n, one in enumerate(segments) if one is old[0]), len(segments))
        after = first + len(old)
        if after >= len(segments) or any(
            a is not b for a, b in zip(segments[first:after], old, strict=True)
        ):
            return False
        try:
            copy.commit()
            paths: list[str] = []
            for segment in old:
                segment.is_replaced = True
                paths += segment.rename_deleted()
                if segment is not old[0]:
                    paths += self._rename_snapshot(segment)
            copy.take_place()
            new = Segment.open(
                self._files, self.directory, copy.base_offset, self.config, copy.created_ms
            )
        except OSError as error:
            raise self._fail(f"compaction of {self.directory} failed", error) from error
        self._segments = [*segments[:first], new, *segments[after:]]
        self._directory_unsynced = True
        self._show()
        self._host.discard(self, paths)
        return True

    def sync_directory(self) -> None:
        """Make the names of the files durable; blocks."""
        try:
            self._files.sync_directory(self.directory)
        except OSError as error:
            raise self._fail(f"sync of {self.directory} failed", error) from error

    # -- the end -------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop what lies at or above ``offset``: the leader has something else there. Blocks."""
        self._check_usable()
        if offset >= self._end:
            # This replica may have begun to lead there and then written nothing.
            if self._epochs.truncate_end(self._end):
                self._epochs_unwritten = True
                self._host.unwritten(self)
            return
        try:
            keep = self._slot(self._segments, offset) + 1
            if offset <= self._segments[0].base_offset:
                keep = 0
            self._discard(self._segments[keep:])
            if keep:
                self._segments[keep - 1].truncate_to(offset)
                self._segments[keep - 1].finish_indexes()
            self._reload(offset)
        except OSError as error:
            raise self._fail(f"truncation of {self.directory} failed", error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log goes on at ``offset``, after a snapshot. Blocks."""
        self._check_usable()
        try:
            self._discard(self._segments)
            self._epochs.clear()
            self._epochs_unwritten = True
            self._reload(offset)
        except OSError as error:
            raise self._fail(f"truncation of {self.directory} failed", error) from error

    def _reload(self, end: int) -> None:
        """Take the state from the files again, which were cut back to ``end``."""
        if self._epochs.truncate_end(end):
            self._epochs_unwritten = True
        self.write_companions()
        opening = Opening(
            self._files,
            self.directory,
            self.config,
            self.flushed_ms,
            clean=True,
            log_start_offset=min(self.log_start_offset, end),
            high_watermark=self.high_watermark,
        )
        if not Path(self._segments[0].log_path).exists():
            opening.log_start_offset = end
        loaded = load(opening)
        self._segments = loaded.segments
        self._end = loaded.end_offset
        self._epochs = loaded.epochs
        self._producers = loaded.producers
        self._snapshot_offset = loaded.snapshot_offset
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = min(max(self.high_watermark, self.log_start_offset), self._end)
        self.recovery_point = min(self.recovery_point, self._end)
        self.clean_offset = min(self.clean_offset, self._end)
        self._directory_unsynced = True
        self._show()
