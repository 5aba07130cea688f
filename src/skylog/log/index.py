"""The sparse indexes of a segment, in memory exactly as in their files.

``.index``      8-byte entries: i32 offset relative to the base, i32 file position
``.timeindex``  12-byte entries: i64 timestamp, i32 relative offset

An entry names a batch by its *last* offset. Kafka maps these files preallocated. We append in
groups: after an unclean shutdown the indexes of every segment that was not flushed are rebuilt from
its batches, so a late entry does no harm. A file written by Kafka may still have its preallocated
tail of zeros; it is ignored.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from struct import Struct
from typing import Final

from skylog.log.files import Files, WouldBlock
from skylog.wire.batch import NO_TIMESTAMP

# The number of entries that may wait in memory for one write.
PENDING_ENTRIES_MAX: Final = 32


class Index:
    """The common part of both: fixed-size entries, ascending in both fields."""

    entry: Struct
    # Entries reserved for the end of the segment.
    reserved = 0
    __slots__ = (
        "_data",
        "_files",
        "_full_bytes",
        "_path",
        "_written",
        "base_offset",
        "entries_max",
        "unsynced",
    )

    def __init__(self, files: Files, path: str, base_offset: int, bytes_max: int) -> None:
        self._files = files
        self._path = path
        self.base_offset = base_offset
        self.limit(bytes_max)
        self._data = bytearray()
        self._written = 0
        self.unsynced = False

    def limit(self, bytes_max: int) -> None:
        self.entries_max = bytes_max // self.entry.size
        self._full_bytes = (self.entries_max - self.reserved) * self.entry.size

    def load(self, *, block: bool) -> None:
        """Load the file's entries; FileNotFoundError if there is no file."""
        size = Path(self._path).stat().st_size
        data = self._files.read(self._path, 0, size, block=block) if size else b""
        if len(data) < size:
            raise WouldBlock
        self._data = bytearray(data[: size - size % self.entry.size])
        self._written = self._drop_zeros()

    def _drop_zeros(self) -> int:
        """Remove a preallocated tail; only the first entry can be zero in its first four bytes."""
        size = self.entry.size
        end = len(self._data.rstrip(b"\0"))
        end += -end % size
        del self._data[end:]
        return end

    def __len__(self) -> int:
        return len(self._data) // self.entry.size

    def at(self, slot: int) -> tuple[int, int]:
        first, second = self.entry.unpack_from(self._data, slot * self.entry.size)
        return first, second

    def is_sane(self) -> bool:
        """Whether both fields ascend from entry to entry."""
        before = (-1, -1)
        for entry in self.entry.iter_unpack(self._data):
            if entry[0] <= before[0] or entry[1] < before[1]:
                return False
            before = entry
        return True

    def push(self, first: int, second: int) -> None:
        self._data += self.entry.pack(first, second)

    @property
    def is_full(self) -> bool:
        return len(self._data) >= self._full_bytes

    @property
    def write_due(self) -> bool:
        return len(self._data) - self._written >= PENDING_ENTRIES_MAX * self.entry.size

    def write(self) -> None:
        """Write the entries that are only in memory to the file."""
        start, end = self._written, len(self._data)
        if start < end:
            self._files.write_all(self._path, [bytes(self._data[start:end])], start)
            self._written = end
            self.unsynced = True

    def sync(self) -> None:
        """Make the file durable, if it has changed since the last sync."""
        if self.unsynced:
            self.unsynced = False
            self._files.sync(self._path)

    def keep(self, entries: int) -> None:
        """Drop all but the first ``entries``, in memory and in the file."""
        end = entries * self.entry.size
        # A new object: a reader on another thread may be searching the old one.
        self._data = self._data[:end]
        self._written = min(self._written, end)
        self._files.truncate(self._path, self._written)
        self.unsynced = True

    def slot_at_most(self, target: int, field: int) -> int:
        """The last slot whose field is at most ``target``, or −1."""
        unpack, data, size = self.entry.unpack_from, self._data, self.entry.size
        count = len(data) // size
        return bisect_right(range(count), target, key=lambda i: unpack(data, i * size)[field]) - 1


class OffsetIndex(Index):
    """Where in the file the batch with a given last offset begins."""

    entry = Struct(">iI")
    __slots__ = ()

    def append(self, last_offset: int, position: int) -> None:
        self.push(last_offset - self.base_offset, position)

    def floor(self, offset: int) -> tuple[int, int] | None:
        """The last entry at or before ``offset``: its offset and position."""
        slot = self.slot_at_most(offset - self.base_offset, 0)
        return self._entry(slot)

    def floor_position(self, position: int) -> tuple[int, int] | None:
        """The last entry whose batch begins at or before ``position``."""
        return self._entry(self.slot_at_most(position, 1))

    def ceiling_position(self, position: int) -> tuple[int, int] | None:
        """The first entry whose batch begins at or after ``position``."""
        slot = self.slot_at_most(position - 1, 1) + 1
        return self._entry(slot) if slot < len(self) else None

    def _entry(self, slot: int) -> tuple[int, int] | None:
        if slot < 0:
            return None
        relative, position = self.at(slot)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above ``offset``."""
        self.keep(self.slot_at_most(offset - 1 - self.base_offset, 0) + 1)


class TimeIndex(Index):
    """The largest timestamp up to a given last offset."""

    entry = Struct(">qi")
    # The entry that closes the segment.
    reserved = 1
    __slots__ = ()

    @property
    def last(self) -> tuple[int, int]:
        """The newest ``(timestamp, offset)``."""
        if not self._data:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self.at(len(self) - 1)
        return timestamp, self.base_offset + relative

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Only a larger timestamp adds information."""
        if timestamp > self.last[0]:
            self.push(timestamp, offset - self.base_offset)

    def floor(self, timestamp: int) -> tuple[int, int]:
        """The last ``(timestamp, offset)`` at or before ``timestamp``."""
        slot = self.slot_at_most(timestamp, 0)
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        found, relative = self.at(slot)
        return found, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        self.keep(self.slot_at_most(offset - 1 - self.base_offset, 1) + 1)
