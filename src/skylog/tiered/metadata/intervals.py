"""Which copied segment holds an offset of one leader epoch. Pure.

Two leaders may have copied the same offsets with different boundaries, and finish in any order. So
this is no map by start offset, where the later entry would hide a longer one: an offset that any
segment covers is found, in the one that reaches furthest, of several in the one finished last.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple


class Interval(NamedTuple):
    """Offsets of one epoch in one segment; ``end`` is inclusive."""

    start: int
    end: int
    # Grows with each segment that is finished.
    rank: int
    id: bytes


class EpochIntervals:
    """Intervals as parallel arrays, each starting and ending behind the one before it.

    The answer for an offset is then the last one that starts at or below it. What another interval
    outdoes everywhere is kept apart, for the time when that one is deleted.
    """

    __slots__ = ("_ends", "_hidden", "_ids", "_ranks", "_starts")

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")
        self._ranks = array("q")
        self._ids: list[bytes] = []
        self._hidden: list[Interval] = []

    def __len__(self) -> int:
        return len(self._ids) + len(self._hidden)

    def __iter__(self) -> Iterator[Interval]:
        """All of them, by start offset, then by rank."""
        if not self._hidden:
            yield from self._visible()
            return
        yield from sorted((*self._visible(), *self._hidden), key=_by_start)

    def at(self, offset: int) -> Interval | None:
        slot = bisect_right(self._starts, offset) - 1
        if slot < 0 or self._ends[slot] < offset:
            return None
        return self._get(slot)

    def id_at(self, offset: int) -> bytes | None:
        """The segment alone: fetches ask for it."""
        slot = bisect_right(self._starts, offset) - 1
        return None if slot < 0 or self._ends[slot] < offset else self._ids[slot]

    def run(self, offset: int) -> Iterator[Interval]:
        """All that answer for the offsets from this one on, up to the first gap."""
        slot = bisect_right(self._starts, offset) - 1
        if slot < 0 or self._ends[slot] < offset:
            return
        yield self._get(slot)
        for following in range(slot + 1, len(self._ids)):
            if self._starts[following] > self._ends[following - 1] + 1:
                return
            yield self._get(following)

    def add(self, interval: Interval) -> bool:
        """``interval.rank`` is above that of every other one. Whether another has a part of it."""
        slot = bisect_left(self._starts, interval.start)
        follows = slot == 0 or self._ends[slot - 1] <= interval.end
        is_last = slot == len(self._ids)
        if follows and (
            is_last or (self._starts[slot] > interval.start and self._ends[slot] > interval.end)
        ):
            self._insert(slot, interval)
            return (slot > 0 and self._ends[slot - 1] >= interval.start) or (
                not is_last and self._starts[slot + 1] <= interval.end
            )
        self._arrange([*self._visible(), *self._hidden, interval])
        return True

    def remove(self, start: int, id_: bytes) -> None:
        """Forget a segment's interval, if it is here."""
        if self._hidden:
            self._arrange([one for one in (*self._visible(), *self._hidden) if one.id != id_])
            return
        slot = bisect_left(self._starts, start)
        if slot < len(self._ids) and self._ids[slot] == id_:
            for column in (self._starts, self._ends, self._ranks, self._ids):
                del column[slot]

    def _get(self, slot: int) -> Interval:
        return Interval(self._starts[slot], self._ends[slot], self._ranks[slot], self._ids[slot])

    def _visible(self) -> Iterator[Interval]:
        return map(Interval, self._starts, self._ends, self._ranks, self._ids)

    def _insert(self, slot: int, interval: Interval) -> None:
        self._starts.insert(slot, interval.start)
        self._ends.insert(slot, interval.end)
        self._ranks.insert(slot, interval.rank)
        self._ids.insert(slot, interval.id)

    def _arrange(self, intervals: list[Interval]) -> None:
        """Keep those in sight that are the best answer for some offset."""
        visible: list[Interval] = []
        hidden: list[Interval] = []
        for one in sorted(intervals, key=_best_first_of_start):
            if visible and (visible[-1].start == one.start or not _outdoes(one, visible[-1])):
                hidden.append(one)
            else:
                visible.append(one)
        self._starts = array("q", [one.start for one in visible])
        self._ends = array("q", [one.end for one in visible])
        self._ranks = array("q", [one.rank for one in visible])
        self._ids = [one.id for one in visible]
        self._hidden = hidden


def _by_start(one: Interval) -> tuple[int, int]:
    return one.start, one.rank


def _best_first_of_start(one: Interval) -> tuple[int, int, int]:
    return one.start, -one.end, -one.rank


def _outdoes(one: Interval, other: Interval) -> bool:
    return (one.end, one.rank) > (other.end, other.rank)
