"""The type of bytes that may be owned by another object: record batches are passed as these."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, cast

Buffer = bytes | bytearray | memoryview

_new_bytearray: Final = ctypes.pythonapi.PyByteArray_FromStringAndSize
_new_bytearray.restype = ctypes.py_object
_new_bytearray.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)


def room(size: int) -> bytearray:
    """An uninitialized buffer for bytes that are about to be read.

    ``bytearray(size)`` would clear it first, which takes a third as long as the read itself. Only
    the part that was read may be exposed.
    """
    made: Any = _new_bytearray(None, size)
    return cast("bytearray", made)


class Chain:
    """Bytes in several buffers that are sent one after another, without being joined."""

    __slots__ = ("parts", "size")

    def __init__(self, parts: Sequence[Buffer], size: int) -> None:
        self.parts = parts
        self.size = size

    def __len__(self) -> int:
        return self.size


def chained(parts: Sequence[Buffer], size: int) -> Buffer:
    """``parts`` as the records of a response.

    Handlers only use its length; only the codec looks inside.
    """
    if len(parts) == 1:
        return parts[0]
    return cast("Buffer", Chain(parts, size)) if parts else b""
