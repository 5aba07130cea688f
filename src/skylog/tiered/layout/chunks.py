"""Pure: the chunks of a segment's log, as a manifest's ``chunkIndex`` describes them.

Each chunk of the log was transformed alone (compressed, or left as it was), and the results lie one
behind the other in the object. All chunks but the last have the same original size. *Fixed*: all
but the last have the same transformed size too. *Variable*: a table has the size of each.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from skylog.kernel.errors import KafkaError, SkylogError
from skylog.kernel.limits import REMOTE_CHUNKS_MAX
from skylog.wire.batch import Compression
from skylog.wire.compression import compress, decompress

INT32_MAX: Final = (1 << 31) - 1
# Count, base and width of the values before the last one; then those, and the last one.
_HEAD_BYTES: Final = 9
_VALUE_BYTES: Final = 4


class BadManifest(SkylogError):  # noqa: N818
    """A manifest, or what it says of its objects, is not what the plugin writes."""


class Chunk(NamedTuple):
    """Where a chunk is in the log, and where in the object."""

    original_position: int
    original_size: int
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class FixedChunks:
    """The sizes are those of the plugin's constructor, in its order."""

    original_chunk_size: int
    original_file_size: int
    transformed_chunk_size: int
    final_transformed_chunk_size: int

    def __post_init__(self) -> None:
        _check_originals(self.original_chunk_size, self.original_file_size)
        _check_size("transformedChunkSize", self.transformed_chunk_size)
        _check_size("finalTransformedChunkSize", self.final_transformed_chunk_size)

    @classmethod
    def plain(cls, chunk_size: int, file_size: int) -> FixedChunks:
        """Chunks that were not transformed."""
        last = file_size % chunk_size or min(file_size, chunk_size)
        return cls(chunk_size, file_size, chunk_size, last)

    @property
    def count(self) -> int:
        return _count(self.original_chunk_size, self.original_file_size)

    @property
    def object_size(self) -> int:
        if not self.count:
            return 0
        return (self.count - 1) * self.transformed_chunk_size + self.final_transformed_chunk_size

    @property
    def is_plain(self) -> bool:
        """Whether positions in the object are those in the log."""
        return self == FixedChunks.plain(self.original_chunk_size, self.original_file_size)

    def covering(self, start: int, end: int) -> Iterator[Chunk]:
        """The chunks with the bytes from ``start`` to ``end`` of the log, in order."""
        size, last = self.transformed_chunk_size, self.count - 1
        for number in _numbers(self.original_chunk_size, self.original_file_size, start, end):
            original = _original(self.original_chunk_size, self.original_file_size, number)
            held = self.final_transformed_chunk_size if number == last else size
            yield Chunk(*original, number * size, held)


class VariableChunks:
    """Chunks each of which has a size of its own in the object."""

    def __init__(self, original_chunk_size: int, original_file_size: int, sizes: Sequence[int]):
        _check_originals(original_chunk_size, original_file_size)
        expected = _count(original_chunk_size, original_file_size)
        if len(sizes) != expected:
            raise BadManifest(f"{len(sizes)} chunks instead of {expected}")
        for size in sizes:
            _check_size("size of a chunk", size)
        self.original_chunk_size = original_chunk_size
        self.original_file_size = original_file_size
        self._ends = array("q", accumulate(sizes))

    @property
    def count(self) -> int:
        return len(self._ends)

    @property
    def object_size(self) -> int:
        return self._ends[-1] if self._ends else 0

    is_plain: Final = False

    @property
    def sizes(self) -> list[int]:
        return [end - begin for begin, end in zip([0, *self._ends], self._ends, strict=False)]

    def covering(self, start: int, end: int) -> Iterator[Chunk]:
        """The chunks with the bytes from ``start`` to ``end`` of the log, in order."""
        for number in _numbers(self.original_chunk_size, self.original_file_size, start, end):
            original = _original(self.original_chunk_size, self.original_file_size, number)
            begin = self._ends[number - 1] if number else 0
            yield Chunk(*original, begin, self._ends[number] - begin)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VariableChunks)
            and self.original_chunk_size == other.original_chunk_size
            and self.original_file_size == other.original_file_size
            and self._ends == other._ends
        )

    __hash__ = None  # type: ignore[assignment]


Chunks: TypeAlias = FixedChunks | VariableChunks


def encode_sizes(sizes: Sequence[int]) -> str:
    """The text of ``transformedChunks``."""
    return b64encode(compress(Compression.ZSTD, _packed(sizes))).decode()


def decode_sizes(text: str, count: int) -> list[int]:
    """The sizes of ``count`` chunks; nothing larger than theirs is decompressed."""
    try:
        packed = b64decode(text, validate=True)
        room = _HEAD_BYTES + (count + 1) * _VALUE_BYTES
        data = memoryview(decompress(Compression.ZSTD, packed, room))
    except (ValueError, KafkaError) as error:
        raise BadManifest(f"transformedChunks: {error}") from None
    found = int.from_bytes(data[:4])
    if len(data) < 4 or found != count:
        raise BadManifest(f"transformedChunks of {found} chunks instead of {count}")
    return _unpacked(data, count)


def _packed(sizes: Sequence[int]) -> bytes:
    count = len(sizes).to_bytes(4)
    if not sizes:
        return count
    *values, last = sizes
    if not values:
        return count + last.to_bytes(4)
    base = min(values)
    width = max(1, ((max(values) - base).bit_length() + 7) // 8)
    body = b"".join((value - base).to_bytes(width) for value in values)
    return count + base.to_bytes(4) + width.to_bytes(1) + body + last.to_bytes(4)


def _unpacked(data: memoryview, count: int) -> list[int]:
    if count <= 1:
        wanted, base, width, begin = 4 + count * 4, 0, 0, 4
    else:
        base, width = int.from_bytes(data[4:8], signed=True), int.from_bytes(data[8:9])
        if base < 0 or not 1 <= width <= _VALUE_BYTES:
            raise BadManifest(f"transformedChunks with base {base} and {width} bytes for a value")
        begin = _HEAD_BYTES
        wanted = begin + (count - 1) * width + 4
    if len(data) != wanted:
        raise BadManifest(f"transformedChunks of {len(data)} bytes instead of {wanted}")
    values = range(begin, wanted - 4, width) if count > 1 else ()
    sizes = [base + int.from_bytes(data[at : at + width]) for at in values]
    return sizes + [int.from_bytes(data[-4:], signed=True)] * bool(count)


def _check_originals(chunk_size: int, file_size: int) -> None:
    if not 1 <= chunk_size <= INT32_MAX:
        raise BadManifest(f"originalChunkSize of {chunk_size}")
    _check_size("originalFileSize", file_size)
    if _count(chunk_size, file_size) > REMOTE_CHUNKS_MAX:
        raise BadManifest(f"more than {REMOTE_CHUNKS_MAX} chunks")


def _check_size(what: str, size: int) -> None:
    if not 0 <= size <= INT32_MAX:
        raise BadManifest(f"{what} of {size}")


def _count(chunk_size: int, file_size: int) -> int:
    return -(-file_size // chunk_size)


def _numbers(chunk_size: int, file_size: int, start: int, end: int) -> range:
    if not 0 <= start <= end <= file_size:
        raise BadManifest(f"no bytes {start}..{end} in a log of {file_size}")
    return range(start // chunk_size, _count(chunk_size, end) if end > start else 0)


def _original(chunk_size: int, file_size: int, number: int) -> tuple[int, int]:
    position = number * chunk_size
    return position, min(chunk_size, file_size - position)
