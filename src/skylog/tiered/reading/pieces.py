"""Remote segments as bulk readers plan them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skylog.log.checkpoints import EpochStart
from skylog.tiered.reading.needs import Segments
from skylog.tiered.reading.walk import EpochWalk
from skylog.tiered.segments import RemoteSegment


class Piece(NamedTuple):
    """Some offsets, about how many bytes they are, and the latest time that they may have."""

    base_offset: int
    last_offset: int
    byte_size: int
    latest_ms: int


def pieces(
    remote: Segments, epochs: Sequence[EpochStart], start: int, end: int, bytes_max: int
) -> Iterator[Piece]:
    """All offsets from ``start`` to ``end`` in pieces of at most about ``bytes_max``.

    Where batches lie within a segment is not looked up: records are taken to be of one size. What
    no segment has is in a piece, too, for a reader must not pass it over unseen.
    """
    lineage = EpochWalk(epochs, start)
    offset = start
    while offset < end:
        epoch = lineage.move_to(offset)
        segment = remote.segment_for(epoch, offset)
        if segment is None:
            yield Piece(offset, min(lineage.end, end) - 1, 0, -1)
            offset = lineage.end
            continue
        until = min(segment.end_offset + 1, lineage.end, end)
        yield from pieces_of(segment, offset, until, bytes_max)
        offset = until


def pieces_of(segment: RemoteSegment, start: int, end: int, bytes_max: int) -> Iterator[Piece]:
    """Some offsets of one segment."""
    count = segment.end_offset + 1 - segment.start_offset
    size = segment.size * (end - start) // count
    parts = min(-(-size // bytes_max), end - start) or 1
    for number in range(parts):
        first = start + (end - start) * number // parts
        last = start + (end - start) * (number + 1) // parts - 1
        yield Piece(first, last, size // parts, segment.max_timestamp_ms)
