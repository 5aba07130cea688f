"""One compaction pass over one log: find the newest offset of each key, then copy without the rest.

Everything here blocks and runs on an executor's thread, in steps: each ``Steps`` yields how many
bytes it has read and written, so that the caller can throttle it, stop it, and let other work run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.log.aborted import AbortedTransaction, CleanedTransactions
from skylog.log.batch_filter import (
    BatchFilter,
    corrupt,
    records_of,
    whole_batch,
    without_records,
)
from skylog.log.cleanable import Cleanable, fits
from skylog.log.config import LogConfig
from skylog.log.files import Files, Replaced
from skylog.log.offset_map import Reason, Rule, new_offset_map
from skylog.log.segment import Segment
from skylog.log.swap import CleanedSegment, last_batch
from skylog.wire.batch import HEADER_BYTES, Batch, batch_size

Steps = Iterator[int]
# A pass reads at least this much at a time, however little memory is allowed.
_CHUNK_BYTES_MIN: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class PassBudget:
    """The memory of a pass."""

    map_bytes: int
    load_factor: float
    chunk_bytes: int


@dataclass(frozen=True, slots=True)
class PassSource:
    """A log as of the start of the pass."""

    files: Files
    directory: str
    config: LogConfig
    range: Cleanable
    # All segments of the log: a transaction may end after the range.
    segments: Sequence[Segment]
    # The last offset of each producer's last batch, and the epochs of producers without a batch.
    producer_ends: Sequence[int]
    marker_epochs: Mapping[int, int]


class CleanPass:
    """Call ``build_map`` and ``begin_copies``, then ``copy`` for each ``next_copy``."""

    def __init__(self, source: PassSource, budget: PassBudget, seed: bytes, now_ms: int) -> None:
        self._source = source
        self._now_ms = now_ms
        self._chunk_bytes = max(budget.chunk_bytes, _CHUNK_BYTES_MIN)
        found = source.range
        self._offsets = new_offset_map(
            budget.map_bytes, budget.load_factor, found.end - found.first_dirty, seed
        )
        self._latest_offset = found.first_dirty - 1
        self._full = False
        self._aborted: list[AbortedTransaction] = []
        self._transactions = CleanedTransactions(())
        self._filter: BatchFilter  # once the map is built
        self._rest: list[Segment] = []
        # The segments of the latest copy.
        self.group: list[Segment] = []

    @property
    def end_offset(self) -> int:
        """Up to here every key has one record after the pass."""
        return self._latest_offset + 1

    @property
    def keys(self) -> int:
        return len(self._offsets)

    # -- the map -------------------------------------------------------------------------------

    def build_map(self) -> Steps:
        """Record the newest offsets of the dirty part, as far as the map has room."""
        self._aborted = self._read_aborted()
        self._transactions = CleanedTransactions(self._aborted)
        found = self._source.range
        for segment in found.dirty_segments:
            start = segment.position_of(max(found.first_dirty, segment.base_offset), block=True)
            yield from self._walk(segment, segment.size if start is None else start, self._note)
            if self._full:
                break
        else:
            self._latest_offset = found.end - 1
        if self.end_offset == found.first_dirty:
            raise corrupt("log.cleaner.dedupe.buffer.size is too small for a single batch")

    def _read_aborted(self) -> list[AbortedTransaction]:
        found: list[AbortedTransaction] = []
        for segment in self._source.segments:
            found += segment.aborted.entries(block=True)
            if segment.is_replaced:
                raise Replaced
        return found

    def _note(self, chunk: memoryview) -> int:
        at, start = 0, self._source.range.first_dirty
        while at < len(chunk):
            step = self._offsets.note_batches(chunk[at:], start)
            at += step.consumed
            self._latest_offset = max(self._latest_offset, step.latest_offset)
            if step.reason is Reason.BROKEN:
                raise corrupt(f"no valid batch after offset {self._latest_offset}")
            self._full = step.reason is Reason.MAP_FULL
            if step.reason is not Reason.NEEDS_CALLER:
                break
            batch = whole_batch(chunk, at)
            if batch is None or not self._note_one(batch):
                break
            at += batch.size
        return at

    def _note_one(self, batch: Batch) -> bool:
        """False if the map is full."""
        start = self._source.range.first_dirty
        if batch.is_control:
            self._transactions.is_marker_free(batch)
        elif not self._transactions.is_aborted(batch):
            data = records_of(batch)
            self._full = not self._offsets.note(data, batch.record_count, batch.base_offset, start)
        if not self._full and batch.last_offset >= start:
            self._latest_offset = batch.last_offset
        return not self._full

    def _walk(self, segment: Segment, position: int, step: Callable[[memoryview], int]) -> Steps:
        """Pass a segment to ``step``, which returns how many bytes of whole batches it took."""
        size = self._chunk_bytes
        while position < segment.size and not self._full:
            left = segment.size - position
            chunk = self._source.files.read(segment.log_path, position, min(size, left))
            taken = step(chunk)
            if taken == 0 and not self._full:
                size = self._larger(chunk, left, segment)
                continue
            size = self._chunk_bytes
            position += taken
            yield len(chunk)

    def _larger(self, chunk: memoryview, left: int, segment: Segment) -> int:
        """The size of a batch that is larger than the chunk."""
        wanted = batch_size(chunk, 0) if len(chunk) >= HEADER_BYTES else 0
        if not len(chunk) < wanted <= left:
            raise corrupt(f"{segment.log_path} ends inside a batch")
        return wanted

    # -- the copies ----------------------------------------------------------------------------

    def begin_copies(self) -> None:
        """Records beyond the map's range are kept unchanged."""
        source = self._source
        self._rest = [one for one in source.range.segments if one.base_offset < self.end_offset]
        self._full = False
        self._transactions = CleanedTransactions(self._aborted)
        rule = Rule(
            self._latest_offset, self._now_ms, self._now_ms + source.config.delete_retention_ms
        )
        self._filter = BatchFilter(
            self._offsets, rule, self._transactions, source.producer_ends, source.marker_epochs
        )

    def next_copy(self) -> CleanedSegment | None:
        """A copy of the next segments, None if there are no more."""
        if not self._rest:
            return None
        source, base_offset = self._source, self._rest[0].base_offset
        return CleanedSegment(
            source.files, source.directory, base_offset, source.config, self._now_ms
        )

    def copy(self, copy: CleanedSegment) -> Steps:
        """Write what remains of the next segments, as many as fit, durably; see ``group``."""
        self._transactions.retained.clear()
        copy.begin()
        self.group = []
        while not self.group or (self._rest and self._fits(copy)):
            segment = self._rest.pop(0)
            self.group.append(segment)
            before = copy.size
            for count in self._walk(segment, 0, lambda chunk: self._copy_chunk(chunk, copy)):
                yield count + copy.size - before
                before = copy.size
        self._close_gap(copy)
        copy.finish(self._transactions.retained, self.group[-1].modified_ms)
        yield 0

    def _following(self, segment: Segment) -> int:
        """Where the next segment begins; there always is one."""
        segments = self._source.segments
        slot = bisect_right(segments, segment.base_offset, key=lambda one: one.base_offset)
        return segments[slot].base_offset

    def _fits(self, copy: CleanedSegment) -> bool:
        segment = self._rest[0]
        return fits(copy, segment, self._following(segment), self._source.config)

    def _copy_chunk(self, chunk: memoryview, copy: CleanedSegment) -> int:
        taken, buffers, rows = self._filter.chunk(chunk)
        copy.append_rows(buffers, rows)
        return taken

    def _close_gap(self, copy: CleanedSegment) -> None:
        """Keep the last batch without its records: a copy that ends early would look truncated."""
        last = last_batch(self.group[-1])
        if last is not None and last.last_offset > copy.last_offset:
            end = without_records(last)
            copy.append_rows([end], [(last.last_offset, last.max_timestamp, len(end), 0)])
