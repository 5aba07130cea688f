"""The WAL object: one header byte, then batches ordered by topic, partition, arrival.

::

    0        version, 0
    1 …      batches of topic a, partition 0, in order of arrival
    …        batches of topic a, partition 1 …
    …        batches of topic b …

Offsets inside the batches are the producers' own: only the control plane, to which the object was
committed, knows the records' offsets. Readers use coordinates and never parse from one batch to the
next, because the bytes of refused batches stay in the object. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, Generic, Protocol, TypeVar

from skylog.diskless.batch import Extent
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.batch import HEADER_BYTES, Batch, split_batches
from skylog.wire.buffers import Buffer

VERSION: Final = 0
HEADER: Final = bytes([VERSION])
# Extents are 32-bit numbers in commits (Q27).
FILE_BYTES_MAX: Final = 2**31 - 1
_byte_offset: Final = itemgetter(Extent._fields.index("byte_offset"))


class Piece(Protocol):
    """One batch that goes into an object."""

    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> Uuid: ...
    @property
    def partition(self) -> int: ...
    @property
    def buffer(self) -> Buffer: ...


PieceT = TypeVar("PieceT", bound=Piece)


@dataclass(frozen=True, slots=True)
class Layout(Generic[PieceT]):
    """An object ready to be written: its bytes in parts, not copied, and the position of each
    piece."""

    parts: Sequence[Buffer]
    size: int
    pieces: Sequence[tuple[PieceT, int]]


def arrange(pieces: Iterable[PieceT]) -> Layout[PieceT]:
    """Order pieces given in order of arrival, and place them one after the other."""
    ordered = sorted(pieces, key=lambda piece: (piece.topic, piece.topic_id, piece.partition))
    parts: list[Buffer] = [HEADER]
    placed = []
    position = len(HEADER)
    for piece in ordered:
        placed.append((piece, position))
        parts.append(piece.buffer)
        position += len(piece.buffer)
    if position > FILE_BYTES_MAX:
        raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"an object of {position} bytes")
    return Layout(parts, position, placed)


def check_places(extents: Iterable[Extent], size: int) -> None:
    """Refuse batches that are too small, overlap, or exceed their object."""
    end = len(HEADER)
    for _, byte_offset, byte_size in sorted(extents, key=_byte_offset):
        if byte_size < HEADER_BYTES:
            raise _invalid(f"a batch of {byte_size} bytes at byte {byte_offset}")
        if byte_offset < end:
            raise _invalid(f"the batch at byte {byte_offset} overlaps the previous one")
        end = byte_offset + byte_size
    if end > size:
        raise _invalid(f"a batch ends at byte {end} of an object of {size}")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def check_version(data: Buffer) -> None:
    """An object of a version unknown to this release cannot be read."""
    if len(data) < len(HEADER) or data[0] != VERSION:
        found = data[0] if len(data) else "none"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"a WAL object of version {found}")


def batches_of(data: Buffer) -> list[tuple[int, Batch]]:
    """Every batch of a whole object with its position, for tools that inspect one."""
    check_version(data)
    found = []
    position = len(HEADER)
    for batch in split_batches(memoryview(data)[position:]):
        found.append((position, batch))
        position += batch.size
    return found
