"""Which bytes of which objects to read. Pure.

Batches that are close to each other in an object are read with one request, whatever their
partition: a request costs more than the bytes between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from skylog.client.bulk import BatchLocation, Located, Region, Split

# Gaps between two batches that are cheaper to read than to skip.
GAP_BYTES_MAX: Final = 128 * 1024
# Larger requests would only delay the first bytes: several run in parallel.
EXTENT_BYTES_MAX: Final = 8 * 1024 * 1024
FIRST_WINDOW_BYTES: Final = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive batches of a split; or one range of a tiered segment, or of a broker, and then
    the split has the offsets of that alone. ``tiered_url``: the store of tiered segments."""

    split: Split
    batches: tuple[BatchLocation, ...]
    tiered_url: str | None = None

    @property
    def in_wal(self) -> bool:
        return not self.batches or self.batches[0].region is Region.TOPIC

    @property
    def bytes(self) -> int:
        return sum(batch.byte_size for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of one object, and the indexes of the batches in them."""

    key: str
    start: int
    end: int
    places: tuple[int, ...]


def parts_of(split: Split, located: Located) -> Iterator[Part]:
    """What of a page is in a split, in order."""
    batches = [batch for batch in located.batches if batch.last_offset >= split.start_offset]
    for in_wal, run in groupby(batches, key=lambda batch: batch.region is Region.TOPIC):
        if in_wal:
            yield Part(split, tuple(run))
            continue
        for one in run:
            start = max(split.start_offset, one.base_offset)
            end = min(split.end_offset, one.last_offset + 1)
            alone = replace(split, start_offset=start, end_offset=end)
            yield Part(alone, (one,), located.tiered_url)


def extents_of(batches: Sequence[BatchLocation]) -> list[Extent]:
    """The requests that cover all batches; each batch is completely in one of them."""
    order = sorted(
        range(len(batches)), key=lambda at: (batches[at].object_key, batches[at].byte_offset)
    )
    found: list[Extent] = []
    places: list[int] = []
    key, start, end = "", 0, 0
    for place in order:
        batch = batches[place]
        begin, until = batch.byte_offset, batch.byte_offset + batch.byte_size
        near = begin - end <= GAP_BYTES_MAX and until - start <= EXTENT_BYTES_MAX
        if places and not (batch.object_key == key and near):
            found.append(Extent(key, start, end, tuple(places)))
            places = []
        if not places:
            key, start, end = batch.object_key, begin, until
        places.append(place)
        end = max(end, until)
    if places:
        found.append(Extent(key, start, end, tuple(places)))
    return found


class Windows:
    """Parts split and joined into windows of about this many bytes, the unit of memory use.

    The first ones are smaller, so that the consumer can start sooner.
    """

    def __init__(self, window_bytes: int, first_bytes: int = FIRST_WINDOW_BYTES) -> None:
        self._bytes_max = window_bytes
        self._bytes = min(first_bytes, window_bytes)
        self._room = self._bytes
        self._window: list[Part] = []

    def add(self, part: Part) -> Iterator[list[Part]]:
        """Windows that are full now; to be taken before more is added."""
        held: list[BatchLocation] = []
        for batch in part.batches:
            if (held or self._window) and batch.byte_size > self._room:
                if held:
                    self._window.append(replace(part, batches=tuple(held)))
                yield self._window
                held = []
                self._window = []
                self._bytes = min(2 * self._bytes, self._bytes_max)
                self._room = self._bytes
            held.append(batch)
            self._room -= batch.byte_size
        if held:
            self._window.append(replace(part, batches=tuple(held)))

    @property
    def rest(self) -> list[Part]:
        """The remainder that has not filled a window."""
        return self._window
