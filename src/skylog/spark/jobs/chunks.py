"""A topic in chunks: ranges of offsets that are processed one after the other.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ConfigError
from skylog.spark.ranges import Log
from skylog.spark.rate import rate_limit

Offsets = Mapping[int, int]


def encode_offsets(offsets: Offsets) -> dict[str, int]:
    return {str(index): offset for index, offset in sorted(offsets.items())}


def decode_offsets(found: Mapping[str, int]) -> dict[int, int]:
    return {int(index): int(offset) for index, offset in found.items()}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Offsets from ``start`` to ``end`` (exclusive), for the same partitions."""

    start: Offsets
    end: Offsets

    @property
    def size(self) -> int:
        return sum(self.end[index] - begin for index, begin in self.start.items())


def positions(offsets: Offsets, logs: Mapping[int, Log]) -> tuple[dict[int, int], dict[int, int]]:
    """Where each partition continues, and how many offsets retention deleted before they were read.

    A new partition is read from its beginning.
    """
    found, lost = {}, {}
    for index, log in logs.items():
        wanted = offsets.get(index, log.earliest)
        if wanted > log.latest:
            raise ConfigError(
                f"partition {index} ends at {log.latest}, but the table has its records up to"
                f" {wanted}: its end was lost"
            )
        found[index] = max(wanted, log.earliest)
        if found[index] > wanted:
            lost[index] = found[index] - wanted
    return found, lost


def next_chunk(start: Offsets, ends: Offsets, records_max: int) -> Chunk | None:
    """A chunk of each partition in proportion to its backlog; None at the end."""
    waiting = {index: end for index, end in ends.items() if end > start[index]}
    if not waiting:
        return None
    keyed = {TopicPartition("", index): start[index] for index in waiting}
    latest = {TopicPartition("", index): end for index, end in waiting.items()}
    limited = rate_limit(records_max, keyed, latest, {})
    end = {key.partition: offset for key, offset in limited.items()}
    return Chunk({index: start[index] for index in end}, end)
