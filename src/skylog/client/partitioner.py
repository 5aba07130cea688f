"""The partition of a record: by its key as in Kafka's own producer, or sticky."""

from __future__ import annotations

from typing import Final

from skylog.kernel.rng import Random

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, as an unsigned number."""
    length = len(data)
    hashed = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        hashed = (hashed * _M & _MASK) ^ k
    if length > whole:
        hashed ^= int.from_bytes(data[whole:], "little")
        hashed = hashed * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15


def partition_of_key(key: bytes, count: int) -> int:
    """The partition of a key among ``count``."""
    return (murmur2(key) & 0x7FFF_FFFF) % count


class StickyPartitioner:
    """Keyless records of a topic stay with one partition until its batch is full."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._stuck: dict[str, int] = {}

    def choose(self, topic: str, available: list[int]) -> int:
        """One of the partitions that have a leader."""
        current = self._stuck.get(topic)
        if current is None or current not in available:
            current = self._stuck[topic] = available[self._rng.randrange(len(available))]
        return current

    def unstick(self, topic: str, partition: int) -> None:
        """The batch is sent: choose another partition."""
        if self._stuck.get(topic) == partition:
            del self._stuck[topic]
