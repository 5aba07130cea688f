"""The one name for "bytes that somebody else may own": record batches travel as these."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, cast

Buffer = bytes | bytearray | memoryview

_new_bytearray: Final = ctypes.pythonapi.PyByteArray_FromStringAndSize
_new_bytearray.restype = ctypes.py_object
_new_bytearray.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)


def room(size: int) -> bytearray:
    """Space for bytes that are about to be read.

    It holds whatever lay there before: ``bytearray(size)`` would clear it first, which takes a
    third as long as the read itself. Nobody may see more of it than was read.
    """
    made: Any = _new_bytearray(None, size)
    return cast("bytearray", made)


class Chain:
    """Bytes that lie in several places and are sent one after the other, without being joined."""

    __slots__ = ("parts", "size")

    def __init__(self, parts: Sequence[Buffer], size: int) -> None:
        self.parts = parts
        self.size = size

    def __len__(self) -> int:
        return self.size


def chained(parts: Sequence[Buffer], size: int) -> Buffer:
    """``parts`` as the records of an answer.

    Whoever makes an answer asks for no more than its length; only the codec looks into it.
    """
    if len(parts) == 1:
        return parts[0]
    return cast("Buffer", Chain(parts, size)) if parts else b""
