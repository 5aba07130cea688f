"""Which source answers a fetch at an offset: tiered segments, a log on disk, WAL objects. Pure.

The offsets of a partition fall into half-open regions, and a record may be in several of them: in a
WAL object, in the copy on this broker's disk and in a tiered segment. A read goes to the first that
has the offset, in the listed order of preference, and ends at the edge of its region at the latest.
Offsets in no region are left to the WAL: only the control plane knows the actual ends of the log.

    regions listed (first wins)                          an offset     source
    local copy [4000, 5500), following: tail 5500        4000 … 5499   LOCAL
                                                         5500          TAIL
                                                         other         WAL
    log prefix [log start, B0), tiered [log start, B0)   below B0      LOCAL, or TIERED once trimmed
                                                         B0 and above  WAL
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Source(Enum):
    """The source that answers a fetch."""

    TIERED = "tiered"
    LOCAL = "local"
    WAL = "wal"
    # The end of all data: the fetch waits for the next append.
    TAIL = "tail"


class Region(NamedTuple):
    """``start`` ≤ offset < ``end``; empty if the start is not below the end."""

    start: int
    end: int


def source_of(
    offset: int, regions: Iterable[tuple[Source, Region | None]], tail: int | None = None
) -> Source:
    """The source for ``offset``. ``tail`` is the log's end, if that is known for certain here."""
    for source, region in regions:
        if region is not None and region.start <= offset < region.end:
            return source
    return Source.TAIL if offset == tail else Source.WAL
