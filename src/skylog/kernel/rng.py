"""Randomness as a parameter: ids and jitter come from a ``Random`` that a test can seed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Protocol, TypeVar

from skylog.kernel.ids import ZERO_UUID, Uuid

T = TypeVar("T")


class Random(Protocol):
    """The randomness that we need."""

    def randbytes(self, count: int, /) -> bytes: ...

    def random(self) -> float: ...

    def randrange(self, stop: int, /) -> int: ...


def system_random() -> Random:
    """Unpredictable numbers from the operating system."""
    return random.SystemRandom()


def random_uuid(rng: Random) -> Uuid:
    """A version 4 id, never one of Kafka's reserved ones nor one whose text starts with a dash."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        found = Uuid(raw)
        if found != ZERO_UUID and not str(found).startswith("-"):
            return found


def shuffled(items: Iterable[T], rng: Random) -> list[T]:
    """All orders are equally likely."""
    out = list(items)
    for last in range(len(out) - 1, 0, -1):
        other = rng.randrange(last + 1)
        out[last], out[other] = out[other], out[last]
    return out
