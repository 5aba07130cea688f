"""Which bytes of which objects to ask for. Pure.

Batches that lie near each other in an object are read with one request, whatever partition they
are of: a request costs more than the bytes between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.client.bulk import BatchLocation, Split

# Bytes between two batches that are cheaper to read than to leave out.
GAP_BYTES_MAX: Final = 128 * 1024
# Larger requests only come later: several are under way at once.
EXTENT_BYTES_MAX: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """Some batches of a split, one after the other."""

    split: Split
    batches: tuple[BatchLocation, ...]

    @property
    def bytes(self) -> int:
        return sum(batch.byte_size for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of one object, and the places in the list of batches that lie there."""

    key: str
    start: int
    end: int
    places: tuple[int, ...]


def extents_of(batches: Sequence[BatchLocation]) -> list[Extent]:
    """The requests that bring all batches; each batch is whole in one of them."""
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


def windows_of(parts: Iterable[Part], window_bytes: int) -> Iterator[list[Part]]:
    """Parts cut and joined to windows of about so many bytes: what is in memory at once."""
    window: list[Part] = []
    room = window_bytes
    for part in parts:
        held: list[BatchLocation] = []
        for batch in part.batches:
            if (held or window) and batch.byte_size > room:
                if held:
                    window.append(Part(part.split, tuple(held)))
                yield window
                window, held, room = [], [], window_bytes
            held.append(batch)
            room -= batch.byte_size
        if held:
            window.append(Part(part.split, tuple(held)))
    if window:
        yield window
