"""The memory-bounded heart of compaction: which record of a key is the newest, and what goes.

``OffsetMap`` is a table of fixed size: 24 bytes for each key, whatever its length. It runs in C
(compact.c, built by tools/build_native.py) where the library is there, without Python's lock and
many batches at a time, else in Python (offset_map_reference.py).
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from array import array
from pathlib import Path
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
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
from skylog.wire.walker import c_address

__all__ = ["Filtered", "OffsetMap", "Progress", "Reason", "Row", "Rule", "new_offset_map"]

ABI_VERSION: Final = 1
LIBRARY: Final = Path(__file__).with_name("_compact.so")
SLOT_BYTES: Final = 24
# What filtered batches may take, as a multiple of what they took.
_GROWTH_MAX: Final = 3
_ROW: Final = struct.Struct("=qqii")
_FULL: Final = 1
_NO_HORIZON: Final = 2**63 - 1


class _Map(ctypes.Structure):
    _fields_ = (
        ("slots", ctypes.c_void_p),
        ("slot_count", ctypes.c_int64),
        ("used", ctypes.c_int64),
        ("used_max", ctypes.c_int64),
        ("seed_low", ctypes.c_uint64),
        ("seed_high", ctypes.c_uint64),
    )


class _Rule(ctypes.Structure):
    _fields_ = (
        ("latest_offset", ctypes.c_int64),
        ("now_ms", ctypes.c_int64),
        ("new_horizon", ctypes.c_int64),
    )


class _BatchFacts(ctypes.Structure):
    _fields_ = (
        ("base_offset", ctypes.c_int64),
        ("base_timestamp", ctypes.c_int64),
        ("horizon", ctypes.c_int64),
        ("count", ctypes.c_int32),
        ("keep_all", ctypes.c_int32),
    )


class _Filtered(ctypes.Structure):
    _fields_ = (
        ("max_timestamp", ctypes.c_int64),
        ("kept", ctypes.c_int32),
        ("sets_horizon", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("error", ctypes.c_int32),
    )


class _Progress(ctypes.Structure):
    _fields_ = (
        ("latest_offset", ctypes.c_int64),
        ("consumed", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("written", ctypes.c_int32),
        ("rows", ctypes.c_int32),
    )

    def result(self) -> Progress:
        return Progress(
            self.latest_offset, self.consumed, Reason(self.reason), self.written, self.rows
        )


class _Library:
    """The C functions; raises OSError where the library is missing or of another version."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))  # without Python's lock
        try:
            version = library.skylog_compact_abi_version()
        except AttributeError as error:
            raise OSError(f"{path} does not compact") from error
        if version != ABI_VERSION:
            raise OSError(f"{path} has version {version}, wanted {ABI_VERSION}")
        i32, i64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
        self.note = library.skylog_compact_note
        self.note.argtypes = (pointer, pointer, i32, i32, i64, i64)
        self.note_batches = library.skylog_compact_note_batches
        self.note_batches.restype = None
        self.note_batches.argtypes = (pointer, pointer, i32, i64, pointer)
        self.filter = library.skylog_compact_filter
        self.filter.restype = None
        self.filter.argtypes = (pointer,) * 4 + (i32, pointer, pointer, pointer)
        self.filter_batches = library.skylog_compact_filter_batches
        self.filter_batches.restype = None
        self.filter_batches.argtypes = (
            *(pointer, pointer, pointer, i32, pointer, i32),
            *(pointer, pointer, i32, pointer, pointer),
        )


def load_native(path: Path = LIBRARY) -> _Library | None:
    """The C functions, or None where this installation has none that fit."""
    try:
        return _Library(path)
    except OSError:
        return None


NATIVE: Final = load_native()


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
        library: _Library,
    ) -> None:
        """``records_max`` are the records that can come: a map for few of them takes little."""
        self._library = library
        wanted = int(records_max / max(min(load_factor, 1.0), 0.01)) + 2
        slots = max(min(bytes_max // SLOT_BYTES, wanted), 2)
        # Pages that are never touched take no memory.
        self._memory = mmap.mmap(-1, slots * SLOT_BYTES)
        low, high = struct.unpack("<QQ", seed)
        # One slot is always free, or a search would not end.
        used_max = max(min(int(slots * load_factor), slots - 1), 1)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._map = _Map(address, slots, 0, used_max, low, high)
        self._pointer = ctypes.byref(self._map)
        # Used again from call to call.
        self._marks = bytearray()
        self._out = bytearray()
        self._rows = bytearray()

    def __len__(self) -> int:
        return int(self._map.used)

    def note(self, data: Buffer, count: int, base_offset: int, start_offset: int) -> bool:
        """Take in a batch's records; False when there is no room for them all."""
        answer = self._library.note(
            self._pointer, c_address(data), len(data), count, base_offset, start_offset
        )
        if answer < 0:
            raise _corrupt("records are not what their batch declares")
        return bool(answer != _FULL)

    def note_batches(self, data: Buffer, start_offset: int) -> Progress:
        """Take in whole plain batches, as far as there are some."""
        out = _Progress()
        self._library.note_batches(
            self._pointer, c_address(data), len(data), start_offset, ctypes.byref(out)
        )
        return out.result()

    def filter(self, rule: Rule, batch: Batch, data: Buffer, *, keep_all: bool) -> Filtered:
        """Drop what is not the newest of its key, and tombstones whose time has come."""
        size = len(data)
        if batch.record_count > size:
            raise _corrupt(f"{size} bytes of records claim to be {batch.record_count}")
        horizon = batch.delete_horizon_ms
        facts = _BatchFacts(
            batch.base_offset,
            batch.base_timestamp,
            _NO_HORIZON if horizon is None else horizon,
            batch.record_count,
            keep_all,
        )
        out, result = bytearray(size * _GROWTH_MAX), _Filtered()
        self._library.filter(
            self._pointer,
            ctypes.byref(_Rule(*rule)),
            ctypes.byref(facts),
            c_address(data),
            size,
            c_address(bytearray(size)),
            c_address(out),
            ctypes.byref(result),
        )
        if result.error:
            raise _corrupt("records are not what their batch declares")
        records = memoryview(out)[: result.size] if result.size else None
        return Filtered(result.kept, bool(result.sets_horizon), result.max_timestamp, records)

    def filter_batches(
        self, rule: Rule, listed: array[int], data: Buffer
    ) -> tuple[Progress, bytes, list[Row]]:
        """What is left of whole plain batches, as far as there are some, and the rows of it.

        Batches whose last offset is ``listed``, in ascending order, stay without records, too.
        """
        size = len(data)
        if len(self._marks) < size:
            self._marks = bytearray(size)
            self._out = bytearray(size * _GROWTH_MAX)
            self._rows = bytearray((size // HEADER_BYTES + 1) * _ROW.size)
        result = _Progress()
        self._library.filter_batches(
            self._pointer,
            ctypes.byref(_Rule(*rule)),
            listed.buffer_info()[0],
            len(listed),
            c_address(data),
            size,
            c_address(self._marks),
            c_address(self._out),
            len(self._out),
            c_address(self._rows),
            ctypes.byref(result),
        )
        found = _ROW.iter_unpack(memoryview(self._rows)[: result.rows * _ROW.size])
        return result.result(), bytes(memoryview(self._out)[: result.written]), list(found)


OffsetMap = NativeOffsetMap | PythonOffsetMap


def new_offset_map(
    bytes_max: int, load_factor: float, records_max: int, seed: bytes
) -> NativeOffsetMap | PythonOffsetMap:
    """An empty map within ``bytes_max``."""
    if NATIVE is None:
        return PythonOffsetMap(bytes_max, load_factor, records_max, seed)
    return NativeOffsetMap(bytes_max, load_factor, records_max, seed, NATIVE)
