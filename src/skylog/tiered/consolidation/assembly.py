"""The segments of one partition that are being put together, on this broker's disk.

Nothing is synced, and after a start or a loss of leadership nothing is resumed: the WAL still has
all of it. Each assembly has a directory of its own, so that what a thread still does to the files
of a dropped one concerns nobody. A file is open only while it is written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.closed import ClosedSegment
from skylog.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from skylog.tiered.assembly import SegmentAssembler
from skylog.tiered.consolidation.parts import Run, batches_in
from skylog.tiered.consolidation.plan import due_ms, ends_before
from skylog.tiered.consolidation.walk import SegmentWalk

if TYPE_CHECKING:
    from skylog.log.config import LogConfig
    from skylog.log.files import Files
    from skylog.log.producers import ProducerEntry
    from skylog.tiered.consolidation.wal import WalBatch
    from skylog.tiered.segments import TopicIdPartition
    from skylog.wire.batch import Batch
    from skylog.wire.buffers import Buffer


# What is written with one call.
RUN_BYTES: Final = 1024 * 1024


class AssemblyOwner(Protocol):
    """The leader of a partition. Called on the event loop."""

    def heard(self, log_start_offset: int, high_watermark: int) -> None:
        """What the coordinator said."""

    def was_cut(self) -> None:
        """There is a segment to copy."""

    def lost(self, why: str) -> None:
        """The assembly cannot go on: another one is to begin."""


@dataclass(slots=True)
class ClosedPart:
    """A segment to be copied."""

    segment: ClosedSegment
    # The offset from which on it was needed; its first batch may begin below.
    wanted_from: int
    first_ms: int
    leader_epoch: int
    # The state of its own batches alone.
    producers: tuple[ProducerEntry, ...]
    has_snapshot: bool = False
    # Set on the thread that finds the file damaged.
    fault: str | None = None

    def check(self) -> SegmentWalk:
        """For each time that it is put."""
        closed = self.segment
        return SegmentWalk(closed.base_offset, closed.next_offset, self.leader_epoch, self._spoil)

    def _spoil(self, why: str) -> None:
        self.fault = why

    @property
    def files(self) -> tuple[str, ...]:
        """All but the snapshot, from which the next one is made."""
        closed = self.segment
        return closed.log, closed.offset_index, closed.time_index


class _Writer:
    """The segment that is being written. All methods block."""

    def __init__(
        self, files: Files, directory: str, first: Batch, wanted_from: int, interval_bytes: int
    ) -> None:
        Path(directory).mkdir(parents=True, exist_ok=True)
        self._files = files
        self._prefix = f"{directory}/{file_name(first.base_offset, '')}"
        self._path = self._prefix + LOG_SUFFIX
        self._directory = directory
        self._segment = SegmentAssembler(first.base_offset, interval_bytes)
        self._leader_epoch = first.leader_epoch
        self.base_offset = first.base_offset
        self.wanted_from = wanted_from
        files.create(self._path)

    @property
    def size(self) -> int:
        return self._segment.size

    @property
    def index_bytes(self) -> int:
        return self._segment.index_bytes

    def write(self, run: Run) -> None:
        """What a failed write left behind is overwritten by the next."""
        try:
            self._files.write_all(self._path, run.buffers, self.size)
        finally:
            self._files.forget(self._path)
        for batch in run.batches:
            self._segment.add(batch.buffer)

    def close(self, first_ms: int) -> ClosedPart:
        made = self._segment.finish()
        self._files.truncate(self._path, made.size)
        index, time_index = self._prefix + INDEX_SUFFIX, self._prefix + TIME_INDEX_SUFFIX
        self._files.replace(index, made.offset_index, sync=False)
        self._files.replace(time_index, made.time_index, sync=False)
        next_offset = made.last_offset + 1
        closed = ClosedSegment(
            made.base_offset,
            next_offset,
            made.size,
            made.max_timestamp,
            self._path,
            index,
            time_index,
            None,
            f"{self._directory}/{file_name(next_offset, SNAPSHOT_SUFFIX)}",
        )
        return ClosedPart(closed, self.wanted_from, first_ms, self._leader_epoch, made.producers)


@dataclass(slots=True)
class Appended:
    """What became of records: segments that were cut on the way, and what went wrong."""

    cut: list[ClosedPart] = field(default_factory=list)
    error: Exception | None = None


class Assembly:
    """One thread at a time appends and cuts; everything else is of the event loop."""

    def __init__(
        self,
        owner: AssemblyOwner,
        partition: TopicIdPartition,
        name: str,
        directory: str,
        offset: int,
        config: LogConfig,
    ) -> None:
        """``name`` is what others call the partition."""
        self.owner = owner
        self.partition = partition
        self.name = name
        self.directory = directory
        self.config = config
        # The next offset to take.
        self.position = offset
        self.high_watermark = -1
        # Oldest first.
        self.closed: list[ClosedPart] = []
        self.is_dropped = False
        # What the assembler has counted of it.
        self.counted_bytes = 0
        # It is not read before then (monotonic clock).
        self.rests_until = 0.0
        self.failures = 0
        # When the first batch of the open segment arrived.
        self.first_ms = -1
        # The producers' state at the end of what was copied last: the offset, and its file.
        self.snapshot: tuple[int, str] | None = None
        self._kept_snapshot: str | None = None
        self._begin = offset
        self._writer: _Writer | None = None

    @property
    def is_behind(self) -> bool:
        return self.position < self.high_watermark

    @property
    def open_bytes(self) -> int:
        writer = self._writer
        return 0 if writer is None else writer.size

    @property
    def closed_bytes(self) -> int:
        return sum(part.segment.size for part in self.closed)

    @property
    def oldest_ms(self) -> int:
        """When the oldest batch here arrived; −1: there is none."""
        return self.closed[0].first_ms if self.closed else self.first_ms

    @property
    def begins_at(self) -> int:
        """The first offset that is here and that was wanted."""
        if self.closed:
            return self.closed[0].wanted_from
        writer = self._writer
        return self.position if writer is None else writer.wanted_from

    @property
    def due_ms(self) -> int | None:
        """When time cuts the open segment."""
        if self.first_ms < 0:
            return None
        return due_ms(self.first_ms, self.name, self.config)

    def release(self, covered_end: int) -> list[str]:
        """Forget the segments that are remote; returns the files that may go."""
        gone: list[str] = []
        while self.closed and self.closed[0].segment.next_offset <= covered_end:
            part = self.closed.pop(0)
            gone += part.files
            if self._kept_snapshot is not None:
                gone.append(self._kept_snapshot)
            self._kept_snapshot = part.segment.producer_snapshot
        return gone

    # -- on a thread ---------------------------------------------------------------------------

    def append(
        self, parts: Iterable[Buffer], batches: Sequence[WalBatch], files: Files
    ) -> Appended:
        """Add the records of these batches, cutting where a segment ends."""
        done = Appended()
        try:
            self._append(parts, batches, files, done)
        except (OSError, KafkaError) as error:
            done.error = error
        except IndexError:
            done.error = KafkaError(ErrorCode.CORRUPT_MESSAGE, "more records than were found")
        return done

    def _append(
        self, parts: Iterable[Buffer], batches: Sequence[WalBatch], files: Files, done: Appended
    ) -> None:
        run, at = Run(), 0
        for batch, spans in batches_in(parts):
            self._check(batch)
            while batches[at].next_offset < batch.next_offset:
                at += 1
            is_end = self._ends_before(batch, run.size, batches[at].created_ms)
            if is_end or run.size >= RUN_BYTES:
                self._write(run)
                run = Run()
            if is_end:
                done.cut.append(self.cut())
            if self._writer is None:
                interval = self.config.index_interval_bytes
                self._writer = _Writer(files, self.directory, batch, self.position, interval)
                self.first_ms = batches[at].created_ms
            run.add(batch, spans)
            self.position = batch.next_offset
        self._write(run)

    def _check(self, batch: Batch) -> None:
        """Offsets are dense; only the first batch of all may begin below what is wanted."""
        begins = batch.base_offset
        is_first = self.position == self._begin and begins < self.position < batch.next_offset
        if begins != self.position and not is_first:
            what = f"{batch} does not follow offset {self.position}"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, what)

    def _ends_before(self, batch: Batch, unwritten: int, arrived_ms: int) -> bool:
        writer, due = self._writer, self.due_ms
        if writer is None or not writer.size + unwritten:
            return False
        return (due is not None and arrived_ms >= due) or ends_before(
            writer.size + unwritten,
            writer.index_bytes,
            writer.base_offset,
            batch.size,
            batch.last_offset,
            self.config,
        )

    def _write(self, run: Run) -> None:
        if not run.size or self._writer is None:
            return
        try:
            self._writer.write(run)
        except OSError:
            # Nothing of it counts: it is read again.
            self.position = max(run.batches[0].base_offset, self._writer.wanted_from)
            if not self._writer.size:
                self._writer, self.first_ms = None, -1
            raise

    def cut(self) -> ClosedPart:
        """Close the open segment. Raises OSError."""
        if self._writer is None:
            raise FileNotFoundError(self.directory)
        part = self._writer.close(self.first_ms)
        self._writer, self.first_ms = None, -1
        return part
