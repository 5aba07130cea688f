"""Recent objects in memory, bounded by bytes, with LRU eviction.

What this broker wrote is kept as the parts it was written from, without a copy, unless they are so
small that their bookkeeping would take more memory than they do. What it read is kept whole. Old
data bypasses the cache and never evicts the tail.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from skylog.objects.keys import ObjectKey
from skylog.wire.buffers import Buffer

# Parts smaller than this on average are joined.
PART_BYTES_MIN: Final = 4096
# The memory that an object takes besides its bytes. Objects of a fast store may be this small.
ENTRY_BYTES: Final = 512


class HeldObject:
    """The bytes of an object from ``start``, and which of them are verified.

    A batch is never split between two parts.
    """

    __slots__ = ("_checked", "_parts", "_starts", "end", "own", "start")

    def __init__(
        self, parts: Sequence[Buffer], start: int = 0, *, checked: bool = False, own: bool = False
    ) -> None:
        """``checked``: every batch has already been verified. ``own``: only the reader that asked
        for it uses it."""
        self.start = start
        self.own = own
        self._parts = parts
        self._starts: list[int] = []
        for part in parts:
            self._starts.append(start)
            start += len(part)
        self.end = start
        # The starts and ends of verified ranges, alternating.
        self._checked = [self.start, self.end] if checked else []

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def memory(self) -> int:
        return self.size + ENTRY_BYTES

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end

    def read(self, start: int, end: int) -> list[memoryview]:
        """The bytes of a range, in pieces."""
        found: list[memoryview] = []
        at = bisect_right(self._starts, start) - 1
        while start < end:
            begin = self._starts[at]
            piece = memoryview(self._parts[at])[start - begin : end - begin]
            found.append(piece)
            start += len(piece)
            at += 1
        return found

    def is_checked(self, start: int, end: int) -> bool:
        at = bisect_right(self._checked, start)
        return at % 2 == 1 and end <= self._checked[at]

    def note_checked(self, start: int, end: int) -> None:
        """All batches of the range are valid; it begins and ends at batch boundaries."""
        first, last = bisect_left(self._checked, start), bisect_right(self._checked, end)
        # Bounds within a range that is already known are dropped.
        begins, ends = [start] if first % 2 == 0 else [], [end] if last % 2 == 0 else []
        self._checked[first:last] = begins + ends


class ObjectCache:
    """Whole objects by key. ``bytes`` is the memory that they take, not only their size."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._objects: OrderedDict[str, HeldObject] = OrderedDict()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def put(self, key: ObjectKey, parts: Sequence[Buffer], size: int) -> None:
        """Keep an object that this broker has built from verified batches."""
        if size + ENTRY_BYTES > self._bytes_max:
            return
        if size < len(parts) * PART_BYTES_MIN:
            parts = [b"".join(parts)]
        self.keep(str(key), HeldObject(parts, checked=True))

    def keep(self, key: str, held: HeldObject) -> None:
        """Keep an object, unless it is larger than the cache."""
        if held.memory > self._bytes_max or key in self._objects:
            return
        self._objects[key] = held
        self.bytes += held.memory
        while self.bytes > self._bytes_max:
            _, gone = self._objects.popitem(last=False)
            self.bytes -= gone.memory

    def get(self, key: str, start: int, end: int) -> HeldObject | None:
        """The object, if it is cached and has this range."""
        held = self._objects.get(key)
        if held is None or not held.holds(start, end):
            self.misses += 1
            return None
        self._objects.move_to_end(key)
        self.hits += 1
        return held

    def forget(self, key: str) -> bool:
        """Drop an object whose bytes are invalid; returns whether it was here."""
        gone = self._objects.pop(key, None)
        if gone is not None:
            self.bytes -= gone.memory
        return gone is not None
