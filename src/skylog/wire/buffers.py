"""The one name for "bytes that somebody else may own": record batches travel as these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

Buffer = bytes | bytearray | memoryview


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
