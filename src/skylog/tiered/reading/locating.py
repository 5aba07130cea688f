"""Where the batches of a range of offsets are in remote segments, for readers of the store. Pure.

An entry of an offset index has the last offset of a batch and the position where it begins, so a
range of offsets that ends at an entry has its bytes before the next entry's position. The bytes of
neighbouring ranges overlap in a batch or a few, but their offsets do not: who reads them walks the
batches, and takes the offsets that it was told.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from skylog.log.checkpoints import EpochStart
from skylog.tiered.reading.needs import Need, Segments
from skylog.tiered.reading.scanning import offset_table
from skylog.tiered.reading.tables import OffsetTable
from skylog.tiered.reading.walk import EpochWalk
from skylog.tiered.segments import RemoteSegment

# About as many bytes are read with one request.
EXTENT_BYTES: Final = 8 * 1024 * 1024
# Of one answer: other work of the loop gets a turn after them.
SEGMENTS_MAX: Final = 1_000


class RangeWanted(NamedTuple):
    """Offsets, ``end`` exclusive, without segments whose records are all older than a time."""

    start: int
    end: int
    min_timestamp: int
    extents_max: int
    epochs: tuple[EpochStart, ...]


class Extent(NamedTuple):
    """Bytes of a segment, ``end`` exclusive, which hold all batches with the offsets named. The
    first batch begins there; before and behind those wanted there may be others."""

    segment: RemoteSegment
    start: int
    end: int
    base_offset: int
    last_offset: int


class RangeFound(NamedTuple):
    """``next_offset``: how far this is; ``has_more``: because that was enough for one answer, not
    because no segment has the next offset."""

    extents: Sequence[Extent]
    next_offset: int
    has_more: bool = False


def locate(remote: Segments, wanted: RangeWanted) -> Generator[Need, object, RangeFound]:
    found: list[Extent] = []
    lineage = EpochWalk(wanted.epochs, wanted.start)
    offset = wanted.start
    for _ in range(SEGMENTS_MAX):
        if offset >= wanted.end:
            return RangeFound(found, offset)
        segment = remote.segment_for(lineage.move_to(offset), offset)
        if segment is None:
            return RangeFound(found, offset)
        until = min(segment.end_offset + 1, lineage.end, wanted.end)
        if segment.max_timestamp_ms >= wanted.min_timestamp:
            for extent in (yield from _extents(segment, offset, until)):
                if len(found) == wanted.extents_max:
                    return RangeFound(found, extent.base_offset, has_more=True)
                found.append(extent)
        offset = until
    return RangeFound(found, offset, has_more=offset < wanted.end)


def _extents(
    segment: RemoteSegment, start: int, end: int
) -> Generator[Need, object, Iterator[Extent]]:
    is_whole = start <= segment.start_offset and end > segment.end_offset
    if is_whole and segment.size <= EXTENT_BYTES:
        return iter((Extent(segment, 0, segment.size, start, end - 1),))
    table = yield from offset_table(segment)
    return cut(segment, table, start, end)


def cut(
    segment: RemoteSegment,
    table: OffsetTable,
    start: int,
    end: int,
    bytes_max: int = EXTENT_BYTES,
) -> Iterator[Extent]:
    """Extents of about so many bytes, or of what is between two entries of the index."""
    slot = table.slot_of_offset(start)
    position = table.entry_at(slot)[1] if slot >= 0 else 0
    last_slot = table.slot_of_offset(end - 2) + 1
    while start < end:
        slot = min(max(table.slot_of_position(position + bytes_max), slot + 1), last_slot)
        behind = table.entry_at(slot + 1)[1] if slot + 1 < table.count else segment.size
        if slot == last_slot:
            yield Extent(segment, position, behind, start, end - 1)
            return
        last, following = table.entry_at(slot)
        yield Extent(segment, position, behind, start, last)
        start, position = last + 1, following
