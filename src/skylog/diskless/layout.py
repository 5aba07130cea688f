"""The WAL object: one header byte, then batches ordered by topic, partition, arrival.

::

    0        version, 0
    1 …      batches of topic a, partition 0, in order of arrival
    …        batches of topic a, partition 1 …
    …        batches of topic b …

Offsets inside the batches are the producers' own: which offsets the records have is known only to
who committed the object. Readers go by coordinates and never parse on from one batch to the next,
for bytes of batches that were refused stay where they are. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.batch import Batch, split_batches
from skylog.wire.buffers import Buffer

VERSION: Final = 0
HEADER: Final = bytes([VERSION])
# Extents are 32-bit numbers in commits.
FILE_BYTES_MAX: Final = 2**31 - 1


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


class Extent(NamedTuple):
    """Where a batch is in the object."""

    byte_offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Layout(Generic[PieceT]):
    """An object ready to be written: its bytes in parts, not copied, and the positions of
    batches."""

    parts: Sequence[Buffer]
    size: int
    pieces: Sequence[tuple[PieceT, Extent]]


def arrange(pieces: Iterable[PieceT]) -> Layout[PieceT]:
    """Order pieces that are given in order of arrival, and place them one after the other."""
    ordered = sorted(pieces, key=lambda piece: (piece.topic, piece.topic_id, piece.partition))
    parts: list[Buffer] = [HEADER]
    placed = []
    position = len(HEADER)
    for piece in ordered:
        size = len(piece.buffer)
        placed.append((piece, Extent(position, size)))
        parts.append(piece.buffer)
        position += size
    if position > FILE_BYTES_MAX:
        raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"an object of {position} bytes")
    return Layout(parts, position, placed)


def check_version(data: Buffer) -> None:
    """An object of a version that this release does not know cannot be read."""
    if len(data) < len(HEADER) or data[0] != VERSION:
        found = data[0] if len(data) else "none"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"a WAL object of version {found}")


def batches_of(data: Buffer) -> list[tuple[int, Batch]]:
    """Every batch of a whole object with its place, for tools that look into one."""
    check_version(data)
    found = []
    position = len(HEADER)
    for batch in split_batches(memoryview(data)[position:]):
        found.append((position, batch))
        position += batch.size
    return found
