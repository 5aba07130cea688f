"""The memory-bounded core of compaction: which record of a key is the newest, what is dropped.

``OffsetMap`` is a table of fixed size: 24 bytes for each key, whatever its length. It runs in C
(compact.c) if built, without the GIL and many batches at a time, else in Python
(offset_map_reference.py).
"""

from __future__ import annotations

import mmap
import struct
from array import array
from types import ModuleType
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.native import load_native
from skylog.log.offset_map_reference import (
    Filtered,
    Progress,
    PythonOffsetMap,
    Reason,
    Row,
    Rule,
)
from skylog.wire.batch import HEADER_BYTES, Batch
from skylog.wire.buffers import Buffer

__all__ = ["Filtered", "OffsetMap", "Progress", "Reason", "Row", "Rule", "new_offset_map"]

SLOT_BYTES: Final = 24
# The size limit of filtered batches, as a multiple of their original size.
_GROWTH_MAX: Final = 3
# The structs of compact.c. The first field of a map is the address of its slots, set by C.
_MAP: Final = struct.Struct("=QqqqQQ")
_RULE: Final = struct.Struct("=qqq")
_FACTS: Final = struct.Struct("=qqqii")
_ROW: Final = struct.Struct("=qqii")
_USED: Final = struct.Struct("=16xq")
_FULL: Final = 1
_NO_HORIZON: Final = 2**63 - 1

NATIVE: Final = load_native("compact")


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)


class NativeOffsetMap:
    """The offset of the newest record of each key, by a keyed hash of 128 bits."""

    def __init__(
        self,
        bytes_max: int,
        load_factor: float,
        records_max: int,
        seed: bytes,
        library: ModuleType,
    ) -> None:
        """``records_max`` is the largest possible number of records: for few, the map is small."""
        self._library = library
        wanted = int(records_max / max(min(load_factor, 1.0), 0.01)) + 2
        slots = max(min(bytes_max // SLOT_BYTES, wanted), 2)
        # Pages that are never touched take no memory.
        self._memory = mmap.mmap(-1, slots * SLOT_BYTES)
        low, high = struct.unpack("<QQ", seed)
        # One slot is always free; otherwise a search would not end.
        used_max = max(min(int(slots * load_factor), slots - 1), 1)
        self._map = bytearray(_MAP.pack(0, slots, 0, used_max, low, high))
        # Reused from call to call.
        self._marks = bytearray()
        self._out = bytearray()
        self._rows = bytearray()

    def __len__(self) -> int:
        (used,) = _USED.unpack_from(self._map)
        return int(used)

    def note(self, data: Buffer, count: int, base_offset: int, start_offset: int) -> bool:
        """Add a batch's records; False if there is no room for them all."""
        answer = self._library.note(self._map, self._memory, data, count, base_offset, start_offset)
        if answer < 0:
            raise _corrupt("records are not what their batch declares")
        return bool(answer != _FULL)

    def note_batches(self, data: Buffer, start_offset: int) -> Progress:
        """Add whole plain batches, up to the first batch of another kind."""
        return _progress(self._library.note_batches(self._map, self._memory, data, start_offset))

    def filter(self, rule: Rule, batch: Batch, data: Buffer, *, keep_all: bool) -> Filtered:
        """Drop records that are not the newest of their key, and expired tombstones."""
        size = len(data)
        if batch.record_count > size:
            raise _corrupt(f"{size} bytes cannot hold {batch.record_count} records")
        horizon = batch.delete_horizon_ms
        facts = _FACTS.pack(
            batch.base_offset,
            batch.base_timestamp,
            _NO_HORIZON if horizon is None else horizon,
            batch.record_count,
            keep_all,
        )
        out = bytearray(size * _GROWTH_MAX)
        max_timestamp, kept, sets_horizon, written, error = self._library.filter(
            self._map, self._memory, _RULE.pack(*rule), facts, data, bytearray(size), out
        )
        if error:
            raise _corrupt("records are not what their batch declares")
        records = memoryview(out)[:written] if written else None
        return Filtered(kept, bool(sets_horizon), max_timestamp, records)

    def filter_batches(
        self, rule: Rule, listed: array[int], data: Buffer
    ) -> tuple[Progress, bytes, list[Row]]:
        """What is left of whole plain batches, up to the first of another kind, and their rows.

        Batches whose last offset is in ``listed`` (ascending) stay even without records.
        """
        size = len(data)
        if len(self._marks) < size:
            self._marks = bytearray(size)
            self._out = bytearray(size * _GROWTH_MAX)
            self._rows = bytearray((size // HEADER_BYTES + 1) * _ROW.size)
        done = _progress(
            self._library.filter_batches(
                *(self._map, self._memory, _RULE.pack(*rule), listed),
                *(data, self._marks, self._out, self._rows),
            )
        )
        found = _ROW.iter_unpack(memoryview(self._rows)[: done.rows * _ROW.size])
        return done, bytes(memoryview(self._out)[: done.written]), list(found)


def _progress(told: tuple[int, int, int, int, int]) -> Progress:
    latest_offset, consumed, reason, written, rows = told
    return Progress(latest_offset, consumed, Reason(reason), written, rows)


OffsetMap = NativeOffsetMap | PythonOffsetMap


def new_offset_map(
    bytes_max: int, load_factor: float, records_max: int, seed: bytes
) -> NativeOffsetMap | PythonOffsetMap:
    """An empty map within ``bytes_max``."""
    if NATIVE is None:
        return PythonOffsetMap(bytes_max, load_factor, records_max, seed)
    return NativeOffsetMap(bytes_max, load_factor, records_max, seed, NATIVE)
