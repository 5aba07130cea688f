"""Randomness for one request, derived from a seed that comes with it: replaying a request with
its seed gives the same records."""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence
from typing import Any

from skylog.kernel.errors import invariant
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import random_uuid


class Draws:
    """A ``kernel.rng.Random`` whose bytes are hashes of the seed and a counter."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._counter = 0
        self._spare = b""

    def randbytes(self, count: int) -> bytes:
        while len(self._spare) < count:
            self._spare += hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
        drawn, self._spare = self._spare[:count], self._spare[count:]
        return drawn

    def random(self) -> float:
        return (int.from_bytes(self.randbytes(8), "big") >> 11) / (1 << 53)

    def randrange(self, stop: int) -> int:
        """Taken modulo ``stop``: with 64 bits the bias is negligible."""
        invariant(stop > 0, "there is something to choose from")
        return int.from_bytes(self.randbytes(8), "big") % stop

    def shuffle(self, items: MutableSequence[Any]) -> None:
        for index in range(len(items) - 1, 0, -1):
            other = self.randrange(index + 1)
            items[index], items[other] = items[other], items[index]

    def uuid(self) -> Uuid:
        return random_uuid(self)
