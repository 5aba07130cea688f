"""The object-storage port. Every error says whether the operation may have taken effect.

Rules that every store follows:

- Bytes under a key never change. A plain ``put`` may therefore be repeated with the same key and
  bytes until it is known to have worked.
- ``put(if_absent=True)`` succeeds when the key holds exactly these bytes afterwards, and raises
  ``Exists`` when it holds others. That makes it repeatable too: after a lost answer the second
  attempt finds the bytes of the first. A caller whose claim must be distinguishable from others'
  puts its own name into the bytes.
- ``put_file`` streams: an object may be larger than memory. It takes a size too, and is refused
  if the source has another. It may be repeated like ``put``, and until it has succeeded no part of
  the object is visible.
- ``get`` returns exactly the requested range, or raises.
- ``delete_many`` treats an absent key as done, and is not atomic: after an error some keys may be
  gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from skylog.kernel.errors import SkylogError
from skylog.objects.keys import ObjectKey

Buffer: TypeAlias = bytes | bytearray | memoryview
Payload: TypeAlias = Buffer | Sequence[Buffer]


class PieceCheck(Protocol):
    """Looks at the bytes of a file in the order in which they are put. On any thread."""

    def take(self, piece: Buffer) -> None:
        """Raises ``ObjectError`` if they must not be put."""

    def end(self) -> None:
        """There are no more; raises ``ObjectError`` if there should be."""


class CheckedFile(NamedTuple):
    """A file that is checked while it is put; a ``check`` for each time that it is read."""

    path: Path
    check: Callable[[], PieceCheck]


# Files and buffers, one behind the other.
Source: TypeAlias = Sequence[Path | CheckedFile | Buffer]


class Outcome(Enum):
    """What an error says about the operation."""

    NOT_DONE = "not done"  # no effect; trying again may help
    AMBIGUOUS = "ambiguous"  # it may have taken effect
    REFUSED = "refused"  # no effect; trying again does not help


class ObjectError(SkylogError):
    """An operation that failed. ``throttled``: the store asks for fewer requests."""

    def __init__(self, message: str, kind: Outcome, *, throttled: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.throttled = throttled


class NotFound(ObjectError):  # noqa: N818 - reads well without Error
    """There is no such object (or bucket)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Outcome.REFUSED)


class Exists(ObjectError):  # noqa: N818
    """The key has other contents than those to be put."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Outcome.REFUSED)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object's entry in a listing or head response."""

    key: ObjectKey
    size: int
    modified_ms: int


class AtHand(Protocol):
    """Operations that a store can complete synchronously, if that is faster than waiting."""

    def put_now(self, key: ObjectKey, data: Payload) -> bool:
        """False only means that ``put`` must be called: the object may exist, complete or not at
        all."""
        ...

    def get_now(self, key: ObjectKey, start: int, end: int) -> bytearray | None:
        """The same bytes as ``get``, in a buffer that only the caller uses.

        None only means that ``get`` must be called.
        """
        ...


class ObjectStore(Protocol):
    """A bucket, a directory, or memory. Implementations inherit from it."""

    @property
    def at_hand(self) -> AtHand | None:
        """None if every operation must be awaited."""
        return None

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None: ...

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        """Put an object of ``size`` bytes, read piece by piece while it is put."""
        ...

    def put_file_requests(self, size: int) -> int:
        """How many requests ``put_file`` takes."""
        return 1

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from ``start`` to ``end`` (exclusive; None is the object's end)."""
        ...

    async def head(self, key: ObjectKey) -> ObjectInfo: ...

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None: ...

    def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        """Objects whose key starts with ``prefix`` and sorts after ``after``, in key order.

        ``prefix`` ends at a slash or is empty; objects with foreign keys are skipped.
        """
        ...

    async def close(self) -> None: ...


def parts_of(data: Payload) -> list[memoryview]:
    """The pieces of a payload as flat bytes, without copying."""
    pieces = [data] if isinstance(data, bytes | bytearray | memoryview) else data
    return [memoryview(piece).cast("B") for piece in pieces]


def joined(data: Payload) -> Buffer:
    """A payload as one buffer; copies only if there are several pieces."""
    parts = parts_of(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def size_of(data: Payload) -> int:
    """Bytes in a payload."""
    return sum(part.nbytes for part in parts_of(data))


def check_range(key: ObjectKey, start: int, end: int | None, size: int) -> tuple[int, int]:
    """The range as two numbers; refused unless the object contains all of it."""
    stop = size if end is None else end
    if not 0 <= start <= stop <= size:
        raise ObjectError(
            f"{key}: no bytes {start}..{stop} in an object of {size}", Outcome.REFUSED
        )
    return start, stop
