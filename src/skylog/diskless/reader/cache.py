"""Recent objects in memory, bounded by bytes; the one used longest ago goes first.

What this broker wrote is kept as the parts it was written from, without a copy unless they are so
small that keeping track of them would take more memory than they do; what it read is kept whole.
Old data is read past the cache and can never push out the tail.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from skylog.objects.keys import ObjectKey
from skylog.wire.buffers import Buffer

# Parts that are smaller than this on average are joined.
PART_BYTES_MIN: Final = 4096
# What keeping an object takes besides its bytes. Objects of a fast store may be this small.
ENTRY_BYTES: Final = 512


class _Entry:
    """The parts of an object, and where each begins."""

    __slots__ = ("parts", "size", "starts")

    def __init__(self, parts: Sequence[Buffer], size: int) -> None:
        self.parts = parts
        self.size = size
        self.starts: list[int] = []
        position = 0
        for part in parts:
            self.starts.append(position)
            position += len(part)

    @property
    def memory(self) -> int:
        return self.size + ENTRY_BYTES

    def read(self, start: int, end: int) -> list[memoryview] | None:
        """The bytes of a range, in pieces; None beyond the end."""
        if end > self.size:
            return None
        found: list[memoryview] = []
        at = bisect_right(self.starts, start) - 1
        while start < end:
            begin = self.starts[at]
            piece = memoryview(self.parts[at])[start - begin : end - begin]
            found.append(piece)
            start += len(piece)
            at += 1
        return found


class ObjectCache:
    """Whole objects by key. ``bytes`` is the memory that they take, not only what they hold."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def put(self, key: ObjectKey, parts: Sequence[Buffer], size: int) -> None:
        """Keep an object; one that is larger than the cache is not kept."""
        if size + ENTRY_BYTES > self._bytes_max or str(key) in self._entries:
            return
        if size < len(parts) * PART_BYTES_MIN:
            parts = [b"".join(parts)]
        entry = _Entry(parts, size)
        self._entries[str(key)] = entry
        self.bytes += entry.memory
        while self.bytes > self._bytes_max:
            _, gone = self._entries.popitem(last=False)
            self.bytes -= gone.memory

    def read(self, key: str, start: int, end: int) -> list[memoryview] | None:
        """The bytes of a range in pieces, or None when they are not here."""
        entry = self._entries.get(key)
        found = entry.read(start, end) if entry is not None else None
        if found is None:
            self.misses += 1
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return found

    def forget(self, key: str) -> bool:
        """Drop an object whose bytes turned out to be wrong; whether it was here."""
        gone = self._entries.pop(key, None)
        if gone is not None:
            self.bytes -= gone.memory
        return gone is not None
