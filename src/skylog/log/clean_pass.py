"""One pass of compaction over one log: the newest offset of each key, then copies without the rest.

Everything here blocks and runs on an executor's thread, in steps: each ``Steps`` yields how many
bytes it has read and written, so that its caller can pace it, stop it, and go on elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.log.aborted import AbortedTransaction, CleanedTransactions, decode_aborted
from skylog.log.batch_filter import BatchFilter, corrupt, records_of, whole_batch
from skylog.log.cleanable import Cleanable, group_segments
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.names import TXN_INDEX_SUFFIX
from skylog.log.offset_map import Reason, Rule, new_offset_map
from skylog.log.segment import Segment
from skylog.log.swap import CleanedSegment
from skylog.wire.batch import HEADER_BYTES, Batch, batch_size

Steps = Iterator[int]
# However little memory is allowed, a pass reads so much at once.
_CHUNK_BYTES_MIN: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class PassBudget:
    """The memory of a pass."""

    map_bytes: int
    load_factor: float
    chunk_bytes: int


@dataclass(frozen=True, slots=True)
class PassSource:
    """A log as it was when the pass began."""

    files: Files
    directory: str
    config: LogConfig
    range: Cleanable
    # All segments of the log: the end of a transaction may lie behind the range.
    segments: Sequence[Segment]
    # The last offset of each producer's last batch, and the epochs of those that have none.
    producer_ends: Sequence[int]
    marker_epochs: Mapping[int, int]


class CleanPass:
    """Call ``build_map``, then ``copy`` for each of ``groups``."""

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

    @property
    def end_offset(self) -> int:
        """Up to here every key has one record when the pass is done."""
        return self._latest_offset + 1

    @property
    def keys(self) -> int:
        return len(self._offsets)

    # -- the map -------------------------------------------------------------------------------

    def build_map(self) -> Steps:
        """Note the newest records of the dirty part, as far as the map has room."""
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
            path = segment.prefix + TXN_INDEX_SUFFIX
            content = self._source.files.read_small(path, LOG_CHECKPOINT_BYTES_MAX)
            try:
                found += decode_aborted(content or b"")
            except ValueError as error:
                raise corrupt(f"{path}: {error}") from error
        return found

    def _note(self, chunk: memoryview) -> int:
        at, start = 0, self._source.range.first_dirty
        while at < len(chunk):
            step = self._offsets.note_batches(chunk[at:], start)
            at += step.consumed
            self._latest_offset = max(self._latest_offset, step.latest_offset)
            if step.reason is Reason.BROKEN:
                raise corrupt(f"no sound batch after offset {self._latest_offset}")
            self._full = step.reason is Reason.MAP_FULL
            if step.reason is not Reason.NEEDS_CALLER:
                break
            batch = whole_batch(chunk, at)
            if batch is None or not self._note_one(batch):
                break
            at += batch.size
        return at

    def _note_one(self, batch: Batch) -> bool:
        """False when the map is full."""
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
        """Feed a segment to ``step``, which says how many bytes of whole batches it took."""
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

    def groups(self) -> list[list[Segment]]:
        """The segments to be copied, those together that become one."""
        source = self._source
        segments = [one for one in source.range.segments if one.base_offset < self.end_offset]
        groups = group_segments(segments, source.range.end, source.config)
        # A copy that ends where the next segment begins leaves no hole, whatever it has lost.
        ends = [group[0].base_offset - 1 for group in groups[1:]]
        following = source.segments[len(segments)].base_offset
        rule = Rule(
            self._latest_offset, self._now_ms, self._now_ms + source.config.delete_retention_ms
        )
        self._full = False
        self._transactions = CleanedTransactions(self._aborted)
        self._filter = BatchFilter(
            self._offsets,
            rule,
            self._transactions,
            [*source.producer_ends, *ends, following - 1],
            source.marker_epochs,
        )
        return groups

    def new_copy(self, group: Sequence[Segment]) -> CleanedSegment:
        source = self._source
        return CleanedSegment(
            source.files, source.directory, group[0].base_offset, source.config, self._now_ms
        )

    def copy(self, group: Sequence[Segment], copy: CleanedSegment) -> Steps:
        """Write what is left of ``group``, durably."""
        source = self._source
        self._transactions.retained.clear()
        source.files.create(copy.log_path)
        copy.create_indexes()
        copy.reset_indexes()
        for segment in group:
            before = copy.size
            for count in self._walk(segment, 0, lambda chunk: self._copy_chunk(chunk, copy)):
                yield count + copy.size - before
                before = copy.size
        copy.finish(self._transactions.retained, group[-1].modified_ms)
        yield 0

    def _copy_chunk(self, chunk: memoryview, copy: CleanedSegment) -> int:
        taken, buffers, rows = self._filter.chunk(chunk)
        copy.append_rows(buffers, rows)
        return taken
