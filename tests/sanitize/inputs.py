"""Input for C: batches of other writers and our own, damaged in useful ways."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from crc32c import crc32c

from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD
from skylog.wire.records import encode_batch

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "records"
NOW: Final = 1_700_000_000_000
TIMES: Final = (0, -1, NOW, NOW + 5000, 2**62, -(2**62), 2**63 - 1, -(2**63))
# Limits of varints and integers, and bytes that look like small fields of a record.
BYTES: Final = (0, 1, 2, 3, 12, 14, 0x3F, 0x40, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
# Positions of a batch header's numbers: offset, length, last delta, times, producer, count.
FIELDS: Final = ((0, 8), (8, 4), (23, 4), (27, 8), (35, 8), (43, 8), (53, 4), (57, 4))


def golden_batches() -> list[bytes]:
    lines = [line for path in GOLDEN.glob("*_batches.txt") for line in path.open()]
    return [bytes.fromhex(line.split()[1]) for line in lines]


def drawn_bytes(rng: Random) -> bytes | None:
    return None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 1, 7, 8, 63, 64, 300)))


def drawn_batch(rng: Random) -> bytes:
    count = rng.choice((1, 1, 2, 5, 20))
    pairs = [(rng.choice((drawn_bytes(rng), b"a", b"b")), drawn_bytes(rng)) for _ in range(count)]
    base = rng.choice((0, rng.choice(TIMES)))
    times = [min(max(base + rng.randrange(-9, 10), -(2**63)), 2**63 - 1) for _ in pairs]
    headers = [
        [("h" * rng.randrange(3), drawn_bytes(rng)) for _ in range(rng.randrange(3))] for _ in pairs
    ]
    return encode_batch(
        pairs,
        timestamp=base,
        timestamps=times,
        headers=headers,
        base_offset=rng.choice((0, 7, 2**40)),
    )


def damaged(rng: Random, data: bytes, other: bytes) -> bytes:
    """``data`` after some changes; some insert a piece of ``other``."""
    out = bytearray(data)
    for _ in range(rng.randrange(4)):
        at, size = rng.randrange(len(out) + 1), rng.choice((1, 1, 2, 5, 10))
        match rng.randrange(6):
            case 0:
                out[at : at + size] = bytes(rng.choice(BYTES) for _ in range(size))
            case 1:
                out[at:at] = bytes(rng.choice(BYTES) for _ in range(size))
            case 2:
                del out[at : at + size]
            case 3:
                del out[at:]
            case 4:
                begin = rng.randrange(len(other) + 1)
                out[at : at + size] = other[begin : begin + rng.randrange(40)]
            case 5:
                field, width = rng.choice(FIELDS)
                edge = rng.choice((0, 1, -1, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))))
                out[field : field + width] = edge.to_bytes(width, "big", signed=True)
    return bytes(out)


def sealed(data: bytes) -> bytes:
    """With a valid length and checksum, so that what follows is read."""
    out = bytearray(data)
    if len(out) >= HEADER_BYTES:
        out[8:12] = (len(out) - LOG_OVERHEAD).to_bytes(4, "big")
        out[17:21] = crc32c(bytes(out[21:])).to_bytes(4, "big")
    return bytes(out)


class Inputs:
    """Everything that is drawn in a round depends only on its number."""

    def __init__(self) -> None:
        self._golden = golden_batches()

    def batch(self, rng: Random) -> bytes:
        found = rng.choice(self._golden) if rng.random() < 0.3 else drawn_batch(rng)
        found = damaged(rng, found, rng.choice(self._golden))
        return sealed(found) if rng.random() < 0.6 else found

    def body(self, rng: Random) -> bytes:
        """Records without a header; noise of few byte values sometimes looks like records."""
        if rng.random() < 0.3:
            return bytes(rng.choice(BYTES) for _ in range(rng.randrange(60)))
        return self.batch(rng)[HEADER_BYTES:]
