"""One segment of a log: a file of batches with its indexes.

Only the last segment of a log is appended to. Readers on other threads see a segment only up to
``size``, which advances after the bytes are in the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.files import Files, Replaced, WouldBlock
from skylog.log.names import (
    DELETED_SUFFIX,
    SEGMENT_SUFFIXES,
)
from skylog.log.segment_indexes import SegmentIndexes
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, Batch, batch_size
from skylog.wire.buffers import Buffer

# Indexes store offsets in 31 bits relative to the segment's base.
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
# Bytes per read while searching for a batch from header to header.
_HOP_BYTES: Final = 4096
# base_offset, batch_length, last_offset_delta
_HOP: Final = Struct(">qi11xi")
# Bytes per read when every header of a range is needed.
_SCAN_BYTES: Final = 65536
_HINTS_MAX: Final = 16
EMPTY: Final = memoryview(b"")


class Segment(SegmentIndexes):
    """A segment that exists on disk."""

    __slots__ = ("created_ms", "is_replaced")

    def __init__(
        self, files: Files, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> None:
        super().__init__(files, directory, base_offset, config)
        self.created_ms = now_ms
        self.is_replaced = False

    @classmethod
    def create(
        cls, files: Files, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> Segment:
        """A new, empty segment; existing files of that name are replaced."""
        segment = cls(files, directory, base_offset, config, now_ms)
        files.create(segment.log_path)
        segment.reset_indexes()
        segment.aborted.reset()
        return segment

    @classmethod
    def open(
        cls, files: Files, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> Segment:
        segment = cls(files, directory, base_offset, config, now_ms)
        segment.size = Path(segment.log_path).stat().st_size
        if segment.size == 0:
            segment.reset_indexes()
            segment.aborted.reset()
        else:
            segment.aborted.look()
        return segment

    # -- writing -------------------------------------------------------------------------------

    def append(self, batches: Sequence[Batch], buffers: list[Buffer]) -> None:
        """Write batches at the end. After an OSError ``size`` is unchanged: see ``cut_torn``."""
        position = self.size
        if position == 0:
            self.create_indexes()
        self._files.write_all(self.log_path, buffers, position)
        for batch in batches:
            self.note(batch, position)
            position += batch.size
        self.size = position
        index, time_index = self._index, self._time_index
        if index is not None and time_index is not None and index.write_due:
            try:
                index.write()
                time_index.write()
            except OSError:
                pass  # they stay in memory until the next write or roll

    def cut_torn(self) -> None:
        """Truncate what a failed write may have left after the end."""
        self._files.truncate(self.log_path, self.size)

    def sync_log(self) -> None:
        """Make the batches durable; may run on another thread. Raises OSError.

        Enough for the last segment: the recovery point is in it, so an unclean start rebuilds its
        indexes.
        """
        self._files.sync(self.log_path)

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that contains ``offset`` or a later one."""
        position = self.position_of(offset, block=True)
        if position is None:
            return
        index, time_index = self.offset_index(block=True), self.time_index(block=True)
        self._files.truncate(self.log_path, position)
        self.size = position
        index.truncate_to(offset)
        time_index.truncate_to(offset)
        self.aborted.truncate_to(offset)
        self._hints = {}
        self._unindexed_bytes = 0
        timestamp, last = time_index.last
        self.first_timestamp = self.first_timestamp if position else None
        # Batches after the last entry may have a larger one.
        entry = index.floor(last)
        for found, _ in self.headers(entry[1] if entry else 0, position):
            if found.max_timestamp > timestamp:
                timestamp, last = found.max_timestamp, found.last_offset
        self._max_timestamp, self._max_timestamp_offset = timestamp, last

    # -- reading -------------------------------------------------------------------------------

    def _read(self, position: int, size: int, block: bool) -> memoryview:
        try:
            return self._files.read(self.log_path, position, size, block=block)
        finally:
            if self.is_replaced:  # set before the files are renamed
                raise Replaced

    def position_of(self, offset: int, *, block: bool) -> int | None:
        """The position of the first batch whose last offset is at least ``offset``."""
        end = self.size
        position = self._hints.get(offset)
        if position is None:
            entry = self.offset_index(block=block).floor(offset)
            position = self._hop(offset, entry[1] if entry else 0, end, block)
            if position is not None:
                self._remember(offset, position)
        return position if position is not None and position < end else None

    def _hop(self, offset: int, position: int, end: int, block: bool) -> int | None:
        while position < end:
            size = min(_HOP_BYTES, end - position)
            chunk = self._read(position, size, block)
            at = 0
            while at + _HOP.size <= len(chunk):
                base, length, delta = _HOP.unpack_from(chunk, at)
                if base + delta >= offset:
                    return position + at
                at += self._checked(length + LOG_OVERHEAD, position + at)
            if at == 0:
                self._too_short(position, block)
            position += at
        return None

    def read(
        self,
        position: int,
        end: int,
        bytes_max: int,
        end_offset: int,
        *,
        min_one: bool,
        block: bool,
    ) -> memoryview:
        """Complete batches from ``position``, within ``bytes_max``; ``end_offset`` is at
        ``end``."""
        wanted = min(end - position, max(bytes_max, HEADER_BYTES))
        buffer = self._read(position, wanted, block)
        if len(buffer) < HEADER_BYTES:
            self._too_short(position, block)
        first = self._checked(batch_size(buffer, 0), position)
        if first > bytes_max and not min_one:
            return EMPTY
        if first > len(buffer):
            buffer = self._read(position, first, block)
            if len(buffer) < first:
                self._too_short(position, block)
        if position + len(buffer) == end:
            self._remember(end_offset, end)
            return buffer
        return self._whole(buffer, position, block)

    def _whole(self, buffer: memoryview, position: int, block: bool) -> memoryview:
        """Cut off a batch that does not fit; the index avoids walking over all batches before
        it."""
        end = len(buffer)
        entry = self.offset_index(block=block).floor_position(position + end - 1)
        at = max(entry[1] - position, 0) if entry else 0
        following = -1
        while at + _HOP.size <= end:
            base, length, delta = _HOP.unpack_from(buffer, at)
            size = self._checked(length + LOG_OVERHEAD, position + at)
            if at + size > end:
                following = base
                break
            following = base + delta + 1
            at += size
        self._remember(following, position + at)
        return buffer[:at]

    def _remember(self, offset: int, position: int) -> None:
        hints = self._hints
        if len(hints) >= _HINTS_MAX:
            hints = self._hints = {}
        hints[offset] = position

    def _checked(self, size: int, position: int) -> int:
        if size < HEADER_BYTES:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.log_path} has no batch at position {position}",
            )
        return size

    def require_batch_end(self, position: int) -> None:
        """Raise if the file does not end where its last batch does."""
        if position != self.size:
            self._too_short(position, block=True)

    def _too_short(self, position: int, block: bool) -> None:
        if not block:
            raise WouldBlock
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.log_path} ends inside a batch at {position}"
        )

    def headers(
        self, position: int, end: int, *, block: bool = True
    ) -> Iterator[tuple[Batch, int]]:
        """Each batch's header and position; the batch's ``buffer`` ends after its header."""
        while position < end:
            size = min(_SCAN_BYTES, end - position)
            chunk = self._read(position, size, block)
            at = 0
            while at + HEADER_BYTES <= len(chunk):
                batch = Batch(chunk[at : at + HEADER_BYTES])
                self._checked(batch.size, position + at)
                yield batch, position + at
                at += batch.size
            if at == 0:
                self._too_short(position, block)
            position += at

    def batch_at(self, position: int, size: int, *, block: bool) -> Batch:
        """The whole batch of ``size`` bytes at ``position``."""
        buffer = self._read(position, size, block)
        if len(buffer) < size:
            self._too_short(position, block)
        return Batch(buffer)

    # -- files ---------------------------------------------------------------------------------

    def rename_deleted(self) -> list[str]:
        """Move the files out of the way; returns their new names, to be removed later."""
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.prefix + suffix
            try:
                self._files.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue
            renamed.append(path + DELETED_SUFFIX)
        return renamed


def slot_of(segments: Sequence[Segment], offset: int) -> int:
    """The index of the segment that contains ``offset``, or of the first."""
    last = len(segments) - 1
    if last < 0 or offset >= segments[last].base_offset:
        return max(last, 0)  # usually: most reads are near the end
    return max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0)
