"""Cleaned copies of segments, and how they replace segments crash-safely.

A copy is written under names that end in ``.cleaned``. Once it is durable its files are renamed to
``.swap``, the ``.log`` last: from then on the copy counts. The original segments are deleted, and
the copy's files get their final names, the ``.log`` first. At startup, incomplete copies are
deleted, and complete ones are used, as Kafka does with the same files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skylog.kernel.errors import KafkaError, StorageError
from skylog.kernel.logging import get_logger
from skylog.log.aborted import AbortedTransaction
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
    parse_file_name,
)
from skylog.log.offset_map import Row
from skylog.log.segment import Segment
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer

_logger = get_logger("log.swap")


class CleanedSegment(Segment):
    """A copy that will become a segment; used by one thread at a time."""

    marker = CLEANED_SUFFIX
    __slots__ = ("last_offset",)
    last_offset: int

    def begin(self) -> None:
        """Create the files, replacing those of an earlier pass."""
        self._files.create(self.log_path)
        self.create_indexes()
        self.reset_indexes()
        self.aborted.reset()
        self.last_offset = self.base_offset - 1

    def append_rows(self, buffers: list[Buffer], rows: Sequence[Row]) -> None:
        """Write filtered batches, as ``append`` does for a client's batches."""
        if not rows:
            return
        self._files.write_all(self.log_path, buffers, self.size)
        position = self.size
        index, times = self.offset_index(block=True), self.time_index(block=True)
        latest, latest_offset = self.max_timestamp(block=True)
        for last_offset, timestamp, size, count in rows:
            if count and timestamp > latest:
                latest, latest_offset = timestamp, last_offset
            if self._unindexed_bytes > self._interval_bytes and not (
                index.is_full or times.is_full
            ):
                index.append(last_offset, position)
                times.maybe_append(latest, latest_offset)
                self._unindexed_bytes = 0
            self._unindexed_bytes += size
            position += size
        self._max_timestamp, self._max_timestamp_offset = latest, latest_offset
        self.last_offset = rows[-1][0]
        self.size = position

    def finish(self, aborted: Sequence[AbortedTransaction], modified_ms: int) -> None:
        """Make the copy durable. Its age is that of the last segment in it."""
        for transaction in aborted:
            self.aborted.append(transaction)
        self.finish_indexes()
        self.sync_log()
        self.sync_indexes()
        self._files.set_modified(self.log_path, modified_ms)

    def commit(self) -> None:
        """From here on the copy counts. Raises OSError."""
        for suffix in reversed(SEGMENT_SUFFIXES):
            self._rename(suffix, CLEANED_SUFFIX, SWAP_SUFFIX)

    def take_place(self) -> None:
        """Give the files their final names, once the segments they replace are deleted."""
        for suffix in SEGMENT_SUFFIXES:
            self._rename(suffix, SWAP_SUFFIX, "")

    def _rename(self, suffix: str, old: str, new: str) -> None:
        path = self.prefix + suffix
        if suffix != TXN_INDEX_SUFFIX or Path(path + old).exists():
            self._files.rename(path + old, path + new)

    def remove(self) -> None:
        """Discard a copy that is not committed."""
        for suffix in SEGMENT_SUFFIXES:
            self._files.remove(self.prefix + suffix + CLEANED_SUFFIX)


def last_batch(segment: Segment) -> Batch | None:
    """The header of a segment's last batch; blocks."""
    index = segment.offset_index(block=True)
    position = index.at(len(index) - 1)[1] if len(index) else 0
    found = [header for header, _ in segment.headers(position, segment.size)]
    return found[-1] if found else None


class _SwapSegment(Segment):
    marker = SWAP_SUFFIX
    __slots__ = ()


def settle_swaps(files: Files, directory: str, config: LogConfig) -> None:
    """Complete or undo a compaction that was interrupted by a crash; removes deleted files."""
    parsed = [parse_file_name(path.name) for path in Path(directory).iterdir()]
    names = [name for name in parsed if name is not None]
    unfinished = min((at for at, _, marker in names if marker == CLEANED_SUFFIX), default=None)

    def is_complete(name: tuple[int, str, str]) -> bool:
        offset, suffix, marker = name
        known = marker == SWAP_SUFFIX and suffix in SEGMENT_SUFFIXES
        return known and (unfinished is None or offset < unfinished)

    swaps = [name for name in names if is_complete(name)]
    doomed = [name for name in names if name[2] and not is_complete(name)]
    # Parts of an incomplete copy must not outlive the file that identifies it.
    doomed.sort(key=lambda name: name[2] == CLEANED_SUFFIX)
    for offset, suffix, _ in swaps:
        if suffix == LOG_SUFFIX:
            end = _end_of_swap(files, directory, offset, config)
            _logger.info("compaction completed", directory=directory, offset=offset, end=end)
            doomed += [name for name in names if _is_replaced(name, offset, end)]
    for offset, suffix, marker in doomed:
        files.remove(f"{directory}/{file_name(offset, suffix)}{marker}")
    for offset, suffix, _ in sorted(swaps, key=lambda name: SEGMENT_SUFFIXES.index(name[1])):
        path = f"{directory}/{file_name(offset, suffix)}"
        files.rename(path + SWAP_SUFFIX, path)
    if swaps:
        files.sync_directory(directory)


def _is_replaced(name: tuple[int, str, str], start: int, end: int) -> bool:
    """Whether a file belongs to a segment that a copy of these offsets replaces."""
    offset, suffix, marker = name
    return not marker and suffix in SEGMENT_SUFFIXES and start <= offset < end


def _end_of_swap(files: Files, directory: str, offset: int, config: LogConfig) -> int:
    """The offset after the last batch of a copy; the segment at its own offset is always
    deleted."""
    segment = _SwapSegment(files, directory, offset, config, 0)
    segment.size = Path(segment.log_path).stat().st_size
    end = offset + 1
    try:
        for header, _ in segment.headers(0, segment.size):
            end = header.next_offset
    except KafkaError as error:
        raise StorageError(f"{segment.log_path} is damaged: {error}") from error
    return end
