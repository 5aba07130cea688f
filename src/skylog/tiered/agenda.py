"""When each partition is to be looked at next: what is not due costs nothing. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Agenda(Generic[Key]):
    """Keys and the times at which they are due, each once."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        # May hold entries that were moved or dropped since: ``_due`` says what counts.
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def put(self, key: Key, at: float) -> None:
        """It is due then, unless it is due earlier already."""
        known = self._due.get(key)
        if known is not None and known <= at:
            return
        self._due[key] = at
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, key))

    def drop(self, key: Key) -> None:
        self._due.pop(key, None)

    @property
    def next_at(self) -> float | None:
        """When the first is due."""
        heap = self._heap
        while heap and self._due.get(heap[0][2]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> Iterator[Key]:
        """Those that are due; each is off the agenda when it is returned."""
        while (at := self.next_at) is not None and at <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            yield key
