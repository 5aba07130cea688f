"""The indexes of a segment: two sparse ones by offset and time, and its aborted transactions.

They are read on demand. New entries are buffered in memory before they are written.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from skylog.log.aborted import AbortedTransaction
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.index import OffsetIndex, TimeIndex
from skylog.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from skylog.log.producers import CompletedTransaction
from skylog.log.txn_index import TxnIndex
from skylog.wire.batch import NO_TIMESTAMP, Batch


class SegmentIndexes:
    """The part of a segment that finds batches. ``max_timestamp`` is None until it is known."""

    marker: ClassVar[str] = ""  # file name suffix while it is not part of a log
    __slots__ = (
        "_files",
        "_hints",
        "_index",
        "_interval_bytes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_time_index",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "first_timestamp",
        "index_bytes_max",
        "log_path",
        "prefix",
        "size",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, config: LogConfig) -> None:
        self._files = files
        self.prefix = f"{directory}/{file_name(base_offset, '')}"
        self.log_path = self.prefix + LOG_SUFFIX + self.marker
        self.base_offset = base_offset
        self.size = 0
        # The largest timestamp of the first batch: rolling by time counts from it.
        self.first_timestamp: int | None = None
        self.index_bytes_max = config.segment_index_bytes
        self._interval_bytes = config.index_interval_bytes
        self._unindexed_bytes = 0
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self.aborted = TxnIndex(files, self.prefix + TXN_INDEX_SUFFIX + self.marker, base_offset)
        self._max_timestamp: int | None = None
        self._max_timestamp_offset = base_offset
        # The end of recent reads: offset → position of the batch that contains it.
        self._hints: dict[int, int] = {}

    def configure(self, config: LogConfig) -> None:
        """The topic's settings changed, or are known at last."""
        self.index_bytes_max = config.segment_index_bytes
        self._interval_bytes = config.index_interval_bytes
        for index in (self._index, self._time_index):
            if index is not None:
                index.limit(self.index_bytes_max)

    @property
    def modified_ms(self) -> int:
        return Path(self.log_path).stat().st_mtime_ns // 1_000_000

    def reset_indexes(self) -> None:
        """Start the indexes of an empty segment, in memory; its first batch creates the files."""
        self._index = OffsetIndex(*self._index_arguments(INDEX_SUFFIX))
        self._time_index = TimeIndex(*self._index_arguments(TIME_INDEX_SUFFIX))
        self._unindexed_bytes = 0
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self.first_timestamp = None
        self._hints = {}

    def _index_arguments(self, suffix: str) -> tuple[Files, str, int, int]:
        name = self.prefix + suffix + self.marker
        return self._files, name, self.base_offset, self.index_bytes_max

    def offset_index(self, *, block: bool) -> OffsetIndex:
        index = self._index
        if index is None:
            index = OffsetIndex(*self._index_arguments(INDEX_SUFFIX))
            index.load(block=block)
            self._index = index
        return index

    def time_index(self, *, block: bool) -> TimeIndex:
        index = self._time_index
        if index is None:
            index = TimeIndex(*self._index_arguments(TIME_INDEX_SUFFIX))
            index.load(block=block)
            self._time_index = index
        return index

    @property
    def indexes_are_full(self) -> bool:
        index, time_index = self._index, self._time_index
        if index is None or time_index is None:
            index, time_index = self.offset_index(block=True), self.time_index(block=True)
        return index.is_full or time_index.is_full

    def drop_indexes(self) -> None:
        """Free the memory of a segment that is not written to; everything is in the files."""
        if self.indexes_unsynced:
            return
        self._index = self._time_index = None
        self.aborted.drop()
        self._hints = {}

    def max_timestamp(self, *, block: bool) -> tuple[int, int]:
        """The largest timestamp, and the last offset of the batch that has it."""
        if self._max_timestamp is None:
            last, offset = self.time_index(block=block).last
            self._max_timestamp_offset = offset
            self._max_timestamp = last
        return self._max_timestamp, self._max_timestamp_offset

    def largest_timestamp(self, *, block: bool) -> int:
        """The age for retention: the file's age if no record has a timestamp."""
        found = self.max_timestamp(block=block)[0]
        return found if found >= 0 else self.modified_ms

    def create_indexes(self) -> None:
        """Create the index files, replacing any existing ones."""
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._files.create(self.prefix + suffix + self.marker)

    def note(self, batch: Batch, position: int) -> None:
        """Update the indexes for the batch at ``position``."""
        timestamp = batch.max_timestamp
        known = self._max_timestamp
        if known is None:
            known = self.max_timestamp(block=True)[0]
        if timestamp > known and batch.record_count:
            self._max_timestamp = timestamp
            self._max_timestamp_offset = batch.last_offset
        if position == 0:
            self.first_timestamp = timestamp
        if self._unindexed_bytes > self._interval_bytes:
            self.offset_index(block=True).append(batch.last_offset, position)
            self.time_index(block=True).maybe_append(*self.max_timestamp(block=True))
            self._unindexed_bytes = 0
        self._unindexed_bytes += batch.size

    def note_aborted(self, done: CompletedTransaction) -> bool:
        """Add the end of an aborted transaction; True if that creates the file."""
        return self.aborted.append(
            AbortedTransaction(
                done.first_offset, done.producer_id, done.last_offset, done.last_stable_offset
            )
        )

    def finish_indexes(self) -> None:
        """Write all index entries, including the closing one with the largest timestamp."""
        if self._max_timestamp is not None and self.size:
            self.time_index(block=True).maybe_append(*self.max_timestamp(block=True))
        for index in self._in_memory():
            index.write()

    def _in_memory(self) -> list[OffsetIndex | TimeIndex | TxnIndex]:
        every = (self._index, self._time_index, self.aborted)
        return [index for index in every if index is not None]

    @property
    def indexes_unsynced(self) -> bool:
        return any(index.unsynced for index in self._in_memory())

    def sync_indexes(self) -> None:
        """Make finished indexes durable, before the recovery point leaves the segment."""
        for index in self._in_memory():
            index.sync()
