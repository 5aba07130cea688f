"""Walks the batches of a remote segment from header to header, over the chunks it is read in.

Pure. A batch may begin in one chunk and end in another. Its checksum is verified once for each
chunk, unless it lies in several: those may come and go one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from skylog.kernel.limits import REMOTE_BATCH_BYTES_MAX
from skylog.log.checkpoints import EpochStart
from skylog.log.epochs import NO_EPOCH
from skylog.tiered.segments import RemoteSegment
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, Batch
from skylog.wire.buffers import Buffer

# The checksum covers everything from the attributes on.
CRC_FROM: Final = 21
# base_offset, batch_length, leader_epoch, magic, crc, last_offset_delta
_HEAD: Final = Struct(">qiibI2xi")
_NEVER: Final = 2**63 - 1


class Chunk:
    """Bytes of a segment's log, and which of its batches are known to be sound."""

    __slots__ = ("checked_from", "checked_to", "data", "end", "start")

    def __init__(self, data: Buffer, start: int) -> None:
        self.data = memoryview(data)
        self.start = start
        self.end = start + len(data)
        # All batches within have the right checksum.
        self.checked_from = self.checked_to = start

    def note_checked(self, start: int, end: int) -> None:
        """Remembers one range: readers go forward, so the latest tells most."""
        if self.checked_from <= start <= self.checked_to:
            self.checked_to = max(self.checked_to, end)
        else:
            self.checked_from, self.checked_to = start, end


class Stop(Enum):
    """Why a walk ended."""

    BYTES = "the chunks end within the next batch"
    LIMIT = "the next batch does not fit"
    SEGMENT = "the segment ends"
    LINEAGE = "the next batch is not of the leader's lineage"
    DAMAGE = "there is no sound batch"


class Walked(NamedTuple):
    """Positions of the batches found, ``end`` exclusive, and the offset behind them.

    ``needed``: where the batch ends that ``BYTES`` is about. ``first_offset``: of the first batch.
    """

    stop: Stop
    begin: int
    end: int
    next_offset: int
    needed: int = 0
    first_offset: int = -1


class EpochWalk:
    """The epoch of each offset from a given one on, as a walk goes forward."""

    __slots__ = ("_epochs", "_slot", "end", "epoch")

    def __init__(self, epochs: Sequence[EpochStart], offset: int) -> None:
        self._epochs = epochs
        self._slot = -1
        self.epoch, self.end = NO_EPOCH, epochs[0][1] if epochs else _NEVER
        self.move_to(offset)

    def move_to(self, offset: int) -> int:
        """The epoch of ``offset``, which is not below that of an earlier call."""
        epochs = self._epochs
        while offset >= self.end:
            self._slot += 1
            following = self._slot + 1
            self.epoch = epochs[self._slot][0]
            self.end = epochs[following][1] if following < len(epochs) else _NEVER
        return self.epoch


class Bounds(NamedTuple):
    """What is asked of a walk."""

    offset: int
    bytes_max: int
    min_one: bool


class Walk:
    """The batches from the one that holds ``bounds.offset``; the first is sought from ``position``
    on, where a batch begins."""

    __slots__ = (
        "_begin",
        "_bounds",
        "_chunks",
        "_end",
        "_first",
        "_following",
        "_lineage",
        "_needed",
        "_position",
        "_segment",
        "_slot",
    )

    def __init__(
        self,
        segment: RemoteSegment,
        chunks: Sequence[Chunk],
        position: int,
        bounds: Bounds,
        lineage: EpochWalk,
    ) -> None:
        self._segment = segment
        self._chunks = chunks
        self._bounds = bounds
        self._lineage = lineage
        self._position = position
        self._end = chunks[-1].end
        self._slot = 0
        self._begin = self._first = -1
        self._following = segment.start_offset
        self._needed = 0

    def run(self) -> Walked:
        stop = self._step()
        while stop is None:
            if self._begin >= 0:
                self._run_on()
            stop = self._step()
        begin = self._begin if self._begin >= 0 else self._position
        return Walked(stop, begin, self._position, self._following, self._needed, self._first)

    def _step(self) -> Stop | None:
        """Take the next batch, or say why not."""
        position, segment = self._position, self._segment
        if position + HEADER_BYTES > self._end:
            if position >= segment.size:
                return Stop.SEGMENT
            self._needed = position + HEADER_BYTES
            return Stop.BYTES if self._needed <= segment.size else Stop.DAMAGE
        chunk = self._chunk(position)
        base, length, epoch, magic, crc, delta = self._head(chunk, position)
        size, last = length + LOG_OVERHEAD, base + delta
        stop_at = position + size
        in_place = base >= self._following and delta >= 0 and last <= segment.end_offset
        is_whole = HEADER_BYTES <= size <= REMOTE_BATCH_BYTES_MAX and stop_at <= segment.size
        if magic != MAGIC or not is_whole or not in_place:
            return Stop.DAMAGE
        if last >= self._bounds.offset:
            if self._lineage.move_to(base) != epoch:
                return Stop.LINEAGE
            if self._is_too_large(size):
                return Stop.LIMIT
            if stop_at > self._end:
                self._needed = stop_at
                return Stop.BYTES
            if not self._is_sound(chunk, position, stop_at, crc):
                return Stop.DAMAGE
            if self._begin < 0:
                self._begin, self._first = position, base
        self._following, self._position = last + 1, stop_at
        return None

    def _run_on(self) -> None:
        """Take the batches that follow in the same chunk, up to one that ``_step`` has to look at:
        a topic may have a batch for each record."""
        chunk = self._chunks[self._slot]
        start, data, unpack = chunk.start, chunk.data, _HEAD.unpack_from
        at, following, last_max = self._position - start, self._following, self._segment.end_offset
        end = min(chunk.end, self._begin + self._bounds.bytes_max) - start
        epoch_wanted, epoch_end = self._lineage.epoch, self._lineage.end
        checked_from, checked_to = chunk.checked_from - start, chunk.checked_to - start
        while at + HEADER_BYTES <= end:
            base, length, epoch, magic, crc, delta = unpack(data, at)
            stop_at, last = at + length + LOG_OVERHEAD, base + delta
            if not following <= base <= last <= last_max or base >= epoch_end:
                break
            if magic != MAGIC or epoch != epoch_wanted or not at + HEADER_BYTES <= stop_at <= end:
                break
            is_checked = checked_from <= at and stop_at <= checked_to
            if not is_checked and crc32c(data[at + CRC_FROM : stop_at]) != crc:
                break
            at, following = stop_at, last + 1
        if at > self._position - start:
            chunk.note_checked(self._position, start + at)
            self._position, self._following = start + at, following

    def _chunk(self, position: int) -> Chunk:
        chunk = self._chunks[self._slot]
        while position >= chunk.end:
            self._slot += 1
            chunk = self._chunks[self._slot]
        return chunk

    def _head(self, chunk: Chunk, position: int) -> tuple[int, ...]:
        if position + HEADER_BYTES <= chunk.end:
            return _HEAD.unpack_from(chunk.data, position - chunk.start)
        return _HEAD.unpack_from(joined(self._chunks, position, position + HEADER_BYTES))

    def _is_too_large(self, size: int) -> bool:
        if self._begin < 0:
            return size > self._bounds.bytes_max and not self._bounds.min_one
        return self._position - self._begin + size > self._bounds.bytes_max

    def _is_sound(self, chunk: Chunk, position: int, end: int, crc: int) -> bool:
        if end > chunk.end:
            return _crc(self._chunks, position + CRC_FROM, end) == crc
        if chunk.checked_from <= position and end <= chunk.checked_to:
            return True
        start = chunk.start
        if crc32c(chunk.data[position - start + CRC_FROM : end - start]) != crc:
            return False
        chunk.note_checked(position, end)
        return True


def headers(
    segment: RemoteSegment, chunks: Sequence[Chunk], position: int
) -> tuple[list[tuple[Batch, int]], bool]:
    """The complete batches from ``position`` on, verified, with their positions, and whether one
    that is not sound comes next. The slow way, for searches and scans."""
    found: list[tuple[Batch, int]] = []
    following, end = segment.start_offset, chunks[-1].end
    while position + HEADER_BYTES <= end:
        batch = Batch(joined(chunks, position, position + HEADER_BYTES))
        stop_at = position + batch.size
        in_place = (
            batch.base_offset >= following
            and batch.last_offset_delta >= 0
            and batch.last_offset <= segment.end_offset
        )
        size_max = min(segment.size - position, REMOTE_BATCH_BYTES_MAX)
        is_whole = HEADER_BYTES <= batch.size <= size_max
        if batch.magic != MAGIC or not in_place or not is_whole:
            return found, True
        if stop_at > end:
            break
        if _crc(chunks, position + CRC_FROM, stop_at) != batch.crc:
            return found, True
        found.append((batch, position))
        following, position = batch.next_offset, stop_at
    return found, False


def slices(chunks: Sequence[Chunk], start: int, end: int) -> list[memoryview]:
    """The bytes of a range, without copying them."""
    return [
        chunk.data[max(start - chunk.start, 0) : end - chunk.start]
        for chunk in chunks
        if chunk.start < end and start < chunk.end
    ]


def joined(chunks: Sequence[Chunk], start: int, end: int) -> memoryview:
    """The bytes of a range in one piece: a copy, if they are in several chunks."""
    parts = slices(chunks, start, end)
    return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))


def _crc(chunks: Sequence[Chunk], start: int, end: int) -> int:
    value = 0
    for part in slices(chunks, start, end):
        value = crc32c(part, value)
    return value
