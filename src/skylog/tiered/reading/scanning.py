"""The steps that all reads of a remote segment share: bytes, indexes, and scans of batches.

Pure. An index that is damaged is rebuilt from the segment itself.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, cast

from skylog.kernel.errors import KafkaError
from skylog.tiered.assembly import SegmentAssembler
from skylog.tiered.reading.needs import Bytes, DamagedSegmentError, Forget, Index, Keep, Need
from skylog.tiered.reading.tables import OffsetTable, TimeTable
from skylog.tiered.reading.walk import Chunk, headers, joined
from skylog.tiered.segments import IndexType, RemoteSegment
from skylog.wire.batch import HEADER_BYTES, Batch

# Bytes that a scan or a search asks for at once.
SCAN_BYTES: Final = 1024 * 1024


class Start(NamedTuple):
    """Where a read of a segment begins. ``named``: the offset by which an index named the batch
    there; −1 if the position is certain."""

    position: int
    named: int = -1

    def is_batch(self, chunks: Sequence[Chunk]) -> bool:
        if self.named < 0:
            return True
        head = joined(chunks, self.position, self.position + HEADER_BYTES)
        return bool(Batch(head).base_offset <= self.named)


def certain(table: OffsetTable, offset: int) -> Start:
    entry = table.floor(offset)
    return Start(entry[1] if entry else 0)


def bytes_of(
    segment: RemoteSegment, start: int, end: int
) -> Generator[Need, object, Sequence[Chunk]]:
    return cast("Sequence[Chunk]", (yield Bytes(segment, start, end)))


def offset_table(segment: RemoteSegment) -> Generator[Need, object, OffsetTable]:
    found = cast("OffsetTable | None", (yield Index(segment, IndexType.OFFSET)))
    if found is None:
        found, _ = yield from rebuild(segment)
    return found


def time_table(segment: RemoteSegment) -> Generator[Need, object, TimeTable]:
    found = cast("TimeTable | None", (yield Index(segment, IndexType.TIMESTAMP)))
    if found is None:
        _, found = yield from rebuild(segment)
    return found


def rebuild(segment: RemoteSegment) -> Generator[Need, object, tuple[OffsetTable, TimeTable]]:
    """Both sparse indexes, from the segment's batches up to the first that is damaged."""
    assembler = SegmentAssembler(segment.start_offset)
    position = 0
    # Whoever reads beyond a damaged batch fails there.
    with suppress(KafkaError):
        while position < segment.size:
            found, _ = yield from scan(segment, position)
            for batch, at in found:
                assembler.add(batch.buffer)
                position = at + batch.size
    made = assembler.finish() if assembler.size else None
    offsets = OffsetTable(segment, made.offset_index if made else b"", is_rebuilt=True)
    times = TimeTable(segment, made.time_index if made else b"", is_rebuilt=True)
    yield Keep(segment, offsets, times)
    return offsets, times


def scan(
    segment: RemoteSegment, position: int
) -> Generator[Need, object, tuple[list[tuple[Batch, int]], Sequence[Chunk]]]:
    """Some sound batches from ``position`` on, at least one, with their positions."""
    end = min(position + SCAN_BYTES, segment.size)
    is_second = False
    while segment.size - position >= HEADER_BYTES:
        chunks = yield from bytes_of(segment, position, end)
        found, is_damaged = headers(segment, chunks, position)
        if found:
            return found, chunks
        if not is_damaged:
            end = position + Batch(joined(chunks, position, position + HEADER_BYTES)).size
        elif is_second:
            break
        else:
            is_second = True
            yield Forget(segment, position, end)
    raise DamagedSegmentError(segment, f"batch at {position}")
