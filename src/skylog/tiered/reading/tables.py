"""The indexes of a remote segment in memory, as in their files, checked before they are believed.

Pure. The formats are those of ``log/index.py`` and ``log/txn_index.py``. An index has no checksum:
what can be checked is that its entries ascend and lie within the segment. A position is believed
only if a batch begins there that an entry may name.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final, TypeAlias

from skylog.kernel.errors import SkylogError
from skylog.log.aborted import ENTRY as _ABORTED_ENTRY
from skylog.log.aborted import AbortedTransaction, decode_aborted
from skylog.log.index import OffsetIndex, TimeIndex
from skylog.log.txn_index import is_sane
from skylog.tiered.segments import IndexType, RemoteSegment
from skylog.wire.batch import HEADER_BYTES, NO_TIMESTAMP
from skylog.wire.buffers import Buffer

_ABORTED_BYTES: Final = _ABORTED_ENTRY.size


class DamagedIndexError(SkylogError):
    """Bytes that are not an index of the segment."""


class _Table:
    __slots__ = ("base_offset", "data", "is_rebuilt")

    entry: Struct

    def __init__(
        self, segment: RemoteSegment, data: Buffer, largest: tuple[int, int], *, is_rebuilt: bool
    ) -> None:
        """``largest``: of each field."""
        self.base_offset = segment.start_offset
        self.data = _without_zeros(data, self.entry.size)
        self.is_rebuilt = is_rebuilt
        before = (-1, -1)
        for entry in self.entry.iter_unpack(self.data):
            if entry[0] <= before[0] or entry[1] < before[1]:
                raise DamagedIndexError("entries that do not ascend")
            before = entry
        if before[0] > largest[0] or before[1] > largest[1]:
            raise DamagedIndexError("entries beyond the segment")

    @property
    def size(self) -> int:
        return len(self.data)

    def _slot(self, target: int, field: int) -> int:
        """The last entry whose field is at most ``target``, or −1."""
        unpack, data, size = self.entry.unpack_from, self.data, self.entry.size
        slots = range(len(data) // size)
        return bisect_right(slots, target, key=lambda slot: unpack(data, slot * size)[field]) - 1

    def _at(self, slot: int) -> tuple[int, int]:
        first, second = self.entry.unpack_from(self.data, slot * self.entry.size)
        return first, second


class OffsetTable(_Table):
    """Where a batch with a given last offset begins."""

    __slots__ = ()
    entry = OffsetIndex.entry

    def __init__(self, segment: RemoteSegment, data: Buffer, *, is_rebuilt: bool = False) -> None:
        """``is_rebuilt``: made from the segment's batches, so that it cannot be wrong."""
        largest = (segment.end_offset - segment.start_offset, segment.size - HEADER_BYTES)
        super().__init__(segment, data, largest, is_rebuilt=is_rebuilt)

    def floor(self, offset: int) -> tuple[int, int] | None:
        """Offset and position of the last entry at or before ``offset``."""
        slot = self._slot(offset - self.base_offset, 0)
        if slot < 0:
            return None
        relative, position = self._at(slot)
        return self.base_offset + relative, position

    @property
    def count(self) -> int:
        return len(self.data) // self.entry.size

    def slot_of_offset(self, offset: int) -> int:
        """The last entry at or before ``offset``, or −1."""
        return self._slot(offset - self.base_offset, 0)

    def slot_of_position(self, position: int) -> int:
        """The last entry whose batch begins at or before ``position``, or −1."""
        return self._slot(position, 1)

    def entry_at(self, slot: int) -> tuple[int, int]:
        """Offset and position."""
        relative, position = self._at(slot)
        return self.base_offset + relative, position

    def ceiling_position(self, position: int) -> int | None:
        """The offset of the first entry whose batch begins at or after ``position``."""
        slot = self._slot(position - 1, 1) + 1
        if slot * self.entry.size >= len(self.data):
            return None
        return self.base_offset + self._at(slot)[0]


class TimeTable(_Table):
    """The largest timestamp up to a given last offset."""

    __slots__ = ()
    entry = TimeIndex.entry

    def __init__(self, segment: RemoteSegment, data: Buffer, *, is_rebuilt: bool = False) -> None:
        largest = (segment.max_timestamp_ms, segment.end_offset - segment.start_offset)
        super().__init__(segment, data, largest, is_rebuilt=is_rebuilt)

    def floor(self, timestamp: int) -> tuple[int, int]:
        """Timestamp and offset of the last entry at or before ``timestamp``."""
        slot = self._slot(timestamp, 0)
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        found, relative = self._at(slot)
        return found, self.base_offset + relative


class AbortedTable:
    """The aborted transactions whose marker is in the segment."""

    __slots__ = ("_data",)

    def __init__(self, segment: RemoteSegment, data: Buffer) -> None:
        self._data = bytes(data)
        if not is_sane(self._data, segment.start_offset):
            raise DamagedIndexError("not a list of aborted transactions")
        if self._data and self._last_offset(len(self) - 1) > segment.end_offset:
            raise DamagedIndexError("transactions that end behind the segment")

    def __len__(self) -> int:
        return len(self._data) // _ABORTED_BYTES

    @property
    def size(self) -> int:
        return len(self._data)

    def _last_offset(self, slot: int) -> int:
        last: int = _ABORTED_ENTRY.unpack_from(self._data, slot * _ABORTED_BYTES)[3]
        return last

    def collect(self, start: int, end: int, found: dict[AbortedTransaction, None]) -> bool:
        """Add those that overlap the offsets from ``start`` to ``end``; True if no later segment
        can have any."""
        # They are in the order in which they end.
        first = bisect_left(range(len(self)), start, key=self._last_offset)
        for at in range(first * _ABORTED_BYTES, len(self._data), _ABORTED_BYTES):
            (entry,) = decode_aborted(self._data[at : at + _ABORTED_BYTES])
            if entry.first_offset < end:
                found[entry] = None
            if entry.last_stable_offset >= end:
                return True
        return False


Table: TypeAlias = OffsetTable | TimeTable | AbortedTable


def stored_size_max(segment: RemoteSegment, kind: IndexType) -> int:
    """No index of a segment is larger: it has at most an entry for each batch, and one more."""
    return (segment.size // HEADER_BYTES + 1) * _ENTRY_BYTES[kind] + _PREALLOCATED_BYTES


def open_table(segment: RemoteSegment, kind: IndexType, data: Buffer) -> Table:
    """DamagedIndexError if it is no such index."""
    if len(data) > stored_size_max(segment, kind):
        raise DamagedIndexError(f"{len(data)} bytes for {segment.size} bytes of records")
    if kind is IndexType.OFFSET:
        return OffsetTable(segment, data)
    if kind is IndexType.TIMESTAMP:
        return TimeTable(segment, data)
    return AbortedTable(segment, data)


_ENTRY_BYTES: Final = {
    IndexType.OFFSET: OffsetIndex.entry.size,
    IndexType.TIMESTAMP: TimeIndex.entry.size,
    IndexType.TRANSACTION: _ABORTED_BYTES,
}
# Kafka's index files may have a tail of zeros, up to the default of segment.index.bytes.
_PREALLOCATED_BYTES: Final = 10 * 1024 * 1024


def _without_zeros(data: Buffer, entry: int) -> bytes:
    kept = bytes(data).rstrip(b"\0")
    kept = kept.ljust(len(kept) + -len(kept) % entry, b"\0")
    if len(data) % entry or len(kept) > len(data):
        raise DamagedIndexError(f"{len(data)} bytes are not whole entries")
    return kept
