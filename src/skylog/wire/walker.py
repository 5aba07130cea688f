"""Walking the records of a batch: count, sizes, deltas, keys, timestamps, headers.

``walk``, ``locate``, ``find_faults``, ``find_timestamp`` and ``is_plain`` run in C (walker.c) where
it is built, else in Python (walker_reference.py). The C side keeps the GIL for a short batch,
because to release it and wait for it again would cost more than the walk. See
docs/adr/0003-record-walker.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Final

from skylog.kernel.native import load_native
from skylog.wire.buffers import Buffer
from skylog.wire.walker_reference import (
    ANY_EARLIEST,
    ANY_LATEST,
    Fault,
    Location,
    RecordsError,
    Walk,
    find_faults_python,
    find_timestamp_python,
    is_plain_python,
    locate_python,
    walk_python,
)

# An empty record: size, attributes, two deltas, null key, null value, no headers.
RECORD_BYTES_MIN: Final = 7
_LOCATION: Final = struct.Struct("=q8i")
_FAULT: Final = struct.Struct("=qii")


class NativeWalker:
    """The C functions, with the same signatures as the Python ones."""

    def __init__(self, library: ModuleType) -> None:
        self._walk: Callable[..., tuple[int, ...]] = library.walk
        self._locate: Callable[..., tuple[int, int]] = library.locate
        self._find_faults: Callable[..., int] = library.find_faults
        self._find_timestamp: Callable[..., tuple[int, int, int]] = library.find_timestamp
        self._is_plain: Callable[..., bool] = library.is_plain

    def walk(
        self,
        data: Buffer,
        count: int,
        base_timestamp: int,
        earliest: int = ANY_EARLIEST,
        latest: int = ANY_LATEST,
        *,
        dense: bool = True,
    ) -> Walk:
        return Walk._make(self._walk(data, count, base_timestamp, earliest, latest, dense))

    def locate(self, data: Buffer, count: int, base_timestamp: int) -> list[Location]:
        # Room for no more records than the bytes can hold, whatever the batch declares.
        room = min(max(count, 0), len(data) // RECORD_BYTES_MIN)
        found = bytearray(room * _LOCATION.size)
        error, index = self._locate(data, found, count, base_timestamp)
        if error:
            raise RecordsError(error, index)
        return [Location._make(row) for row in _LOCATION.iter_unpack(found)]

    def find_faults(
        self,
        data: Buffer,
        count: int,
        base_timestamp: int,
        timestamps: tuple[int, int],
        *,
        keyed: bool,
        faults_max: int,
    ) -> list[Fault]:
        room = min(faults_max, len(data) // RECORD_BYTES_MIN)
        found = bytearray(room * _FAULT.size)
        listed = self._find_faults(data, found, count, base_timestamp, *timestamps, keyed)
        rows = _FAULT.iter_unpack(memoryview(found)[: listed * _FAULT.size])
        return [Fault._make(row) for row in rows]

    def find_timestamp(
        self, data: Buffer, count: int, base_timestamp: int, target: int, delta_min: int = 0
    ) -> tuple[int, int] | None:
        answer, delta, timestamp = self._find_timestamp(
            data, count, base_timestamp, target, delta_min
        )
        if answer < 0:
            raise RecordsError(-answer, delta)
        return (delta, timestamp) if answer else None

    def is_plain(
        self, batch: Buffer, size_max: int, earliest: int, latest: int, *, keyed: bool
    ) -> bool:
        return self._is_plain(batch, size_max, earliest, latest, keyed)


_LIBRARY: Final = load_native("walker")
NATIVE: Final = NativeWalker(_LIBRARY) if _LIBRARY else None
# Whether a whole batch, except for its checksum, is valid and ordinary; if not, it may still be
# valid.
is_plain: Final = NATIVE.is_plain if NATIVE else is_plain_python
# Checks count, sizes and deltas of all records; reports errors instead of raising them.
walk: Final = NATIVE.walk if NATIVE else walk_python
# Lists the positions of each record's parts; deltas only need to increase. Raises RecordsError.
locate: Final = NATIVE.locate if NATIVE else locate_python
# Lists the first records that a topic refuses for their key or timestamp.
find_faults: Final = NATIVE.find_faults if NATIVE else find_faults_python
# (offset delta, timestamp) of the first record at or after a time. Raises RecordsError.
find_timestamp: Final = NATIVE.find_timestamp if NATIVE else find_timestamp_python
