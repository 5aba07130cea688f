"""Which ranges of which objects a fetch needs. Pure.

For each partition at most one range of an object: its batches lie together there. Ranges of one
object that touch or nearly do are read together: a request costs more than the bytes between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from skylog.diskless.plane import BatchCoordinate

# Bytes between two ranges that are cheaper to read than to leave out.
GAP_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Bytes of one object."""

    key: str
    start: int
    end: int

    def holds(self, coordinate: BatchCoordinate) -> bool:
        end = coordinate.byte_offset + coordinate.byte_size
        return (
            self.key == coordinate.object_key
            and self.start <= coordinate.byte_offset
            and end <= self.end
        )


def ranges_of(partitions: Iterable[Iterable[BatchCoordinate]]) -> list[Range]:
    """The ranges to read for the batches of several partitions, by object and place."""
    wanted: set[Range] = set()
    for coordinates in partitions:
        by_object: dict[str, tuple[int, int]] = {}
        for found in coordinates:
            start, end = found.byte_offset, found.byte_offset + found.byte_size
            low, high = by_object.get(found.object_key, (start, end))
            by_object[found.object_key] = min(low, start), max(high, end)
        wanted |= {Range(key, low, high) for key, (low, high) in by_object.items()}
    return merged(sorted(wanted))


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Join neighbours; ``ranges`` are in order."""
    joined: list[Range] = []
    for one in ranges:
        last = joined[-1] if joined else None
        if last is not None and last.key == one.key and one.start - last.end <= GAP_BYTES_MAX:
            joined[-1] = Range(one.key, last.start, max(last.end, one.end))
        else:
            joined.append(one)
    return joined
