"""Walking the records of a batch: count, sizes, deltas, keys, timestamps, headers.

``walk``, ``locate``, ``find_faults``, ``find_timestamp`` and ``is_plain`` run in C (walker.c, built
by tools/build_native.py) where the library is there, else in Python (walker_reference.py). The C
side keeps the GIL for a short batch, because to give it up and wait for it again would cost more
than the walk, and releases it for a long one. See docs/adr/0003-record-walker.md.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from skylog.kernel.errors import invariant
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

ABI_VERSION: Final = 4
LIBRARY: Final = Path(__file__).with_name("_walker.so")
# A record of nothing: size, attributes, two deltas, null key, null value, no headers.
RECORD_BYTES_MIN: Final = 7
# Below this, C is done in a few microseconds and keeps the GIL.
SHORT_BYTES_MAX: Final = 64 * 1024
_INT32_MAX: Final = 2**31 - 1
_LOCATION: Final = struct.Struct("=q8i")
_FAULT: Final = struct.Struct("=qii")


class _WalkResult(ctypes.Structure):
    _fields_ = (
        ("min_timestamp", ctypes.c_int64),
        ("max_timestamp", ctypes.c_int64),
        ("max_timestamp_delta", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("error_index", ctypes.c_int32),
        ("keyless", ctypes.c_int32),
        ("outside", ctypes.c_int32),
    )


_WALK_RESULT: Final = struct.Struct("=qqiiiii")


def c_address(data: Buffer) -> Any:
    """What C may read ``data`` by: no copy but of read-only views, which ctypes refuses."""
    if isinstance(data, bytes):
        return data
    if not data:
        return b""
    view = memoryview(data)
    return bytes(view) if view.readonly else ctypes.byref(ctypes.c_char.from_buffer(view))


class _Functions(NamedTuple):
    walk: Callable[..., None]
    find_timestamp: Callable[..., int]
    find_faults: Callable[..., int]
    is_plain: Callable[..., int]


class NativeWalker:
    """The C functions; raises OSError where the library is missing or of another version."""

    def __init__(self, library: Path) -> None:
        keeping_gil = ctypes.PyDLL(str(library))
        releasing_gil = ctypes.CDLL(str(library))
        try:
            version = keeping_gil.skylog_abi_version()
        except AttributeError as error:
            raise OSError(f"{library} is no walker") from error
        if version != ABI_VERSION:
            raise OSError(f"{library} has version {version}, wanted {ABI_VERSION}")
        self._short = self._functions(keeping_gil)
        self._long = self._functions(releasing_gil)

    @staticmethod
    def _functions(library: ctypes.CDLL) -> _Functions:
        i32, i64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
        walk = library.skylog_walk
        walk.restype = None
        walk.argtypes = (pointer, i32, i32, i64, i64, i64, i32, pointer, pointer)
        find = library.skylog_find_timestamp
        find.argtypes = (pointer, i32, i32, i64, i64, i32, pointer)
        faults = library.skylog_find_faults
        faults.argtypes = (pointer, i32, i32, i64, i64, i64, i32, pointer, i32)
        plain = library.skylog_is_plain
        plain.argtypes = (pointer, i32, i32, i64, i64, i32)
        return _Functions(walk, find, faults, plain)

    def _chosen(self, size: int) -> _Functions:
        invariant(size <= _INT32_MAX, "records larger than a batch can be")
        return self._short if size <= SHORT_BYTES_MAX else self._long

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
        function = self._chosen(len(data)).walk
        result = _WalkResult()
        function(
            c_address(data),
            len(data),
            count,
            base_timestamp,
            earliest,
            latest,
            dense,
            ctypes.byref(result),
            None,
        )
        return Walk._make(_WALK_RESULT.unpack_from(result))

    def locate(self, data: Buffer, count: int, base_timestamp: int) -> list[Location]:
        # Room is made for no more records than the bytes can hold, whatever the batch declares.
        room = min(max(count, 0), len(data) // RECORD_BYTES_MIN + 1)
        function = self._chosen(len(data)).walk
        result = _WalkResult()
        found = ctypes.create_string_buffer(room * _LOCATION.size)
        function(
            c_address(data),
            len(data),
            count,
            base_timestamp,
            ANY_EARLIEST,
            ANY_LATEST,
            False,
            ctypes.byref(result),
            found,
        )
        if result.error:
            raise RecordsError(result.error, result.error_index)
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
        function = self._chosen(len(data)).find_faults
        room = min(faults_max, len(data) // RECORD_BYTES_MIN)
        found = ctypes.create_string_buffer(room * _FAULT.size)
        listed = function(
            c_address(data), len(data), count, base_timestamp, *timestamps, keyed, found, room
        )
        rows = _FAULT.iter_unpack(memoryview(found)[: listed * _FAULT.size])
        return [Fault._make(row) for row in rows]

    def find_timestamp(
        self, data: Buffer, count: int, base_timestamp: int, target: int, delta_min: int = 0
    ) -> tuple[int, int] | None:
        function = self._chosen(len(data)).find_timestamp
        found = ctypes.create_string_buffer(_LOCATION.size)
        answer = function(
            c_address(data), len(data), count, base_timestamp, target, delta_min, found
        )
        if answer == 0:
            return None
        location = Location._make(_LOCATION.unpack(found))
        if answer < 0:
            raise RecordsError(-answer, location.offset_delta)
        return location.offset_delta, location.timestamp

    def is_plain(
        self, batch: Buffer, size_max: int, earliest: int, latest: int, *, keyed: bool
    ) -> bool:
        size = len(batch)
        function = self._chosen(size).is_plain
        return bool(function(c_address(batch), size, size_max, earliest, latest, keyed))


def load_native(library: Path = LIBRARY) -> NativeWalker | None:
    """The C walker, or None where this installation has none that fits."""
    try:
        return NativeWalker(library)
    except OSError:
        return None


NATIVE: Final = load_native()
# Whether a whole batch is sound and as nearly all are, but for its checksum; if not, it may be
# sound all the same.
is_plain: Final = NATIVE.is_plain if NATIVE else is_plain_python
# Checks count, sizes and deltas of all records; says what it saw rather than raise.
walk: Final = NATIVE.walk if NATIVE else walk_python
# Lists where each record's parts lie; deltas only need to grow. Raises RecordsError.
locate: Final = NATIVE.locate if NATIVE else locate_python
# Lists the first records that a topic refuses for their key or timestamp.
find_faults: Final = NATIVE.find_faults if NATIVE else find_faults_python
# (offset delta, timestamp) of the first record at or after a time. Raises RecordsError.
find_timestamp: Final = NATIVE.find_timestamp if NATIVE else find_timestamp_python
