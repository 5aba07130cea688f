"""Offsets committed in transactions that have not ended yet.

A pending offset becomes the committed one when its transaction commits, unless a later record has
committed another one meanwhile. While one is pending, clients that require stable offsets are told
to retry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skylog.wire.messages.offset_commit_value import OffsetCommitValue

TopicPartition = tuple[str, int]


class OffsetPlace(NamedTuple):
    group_id: str
    topic: str
    partition: int


class _Pending(NamedTuple):
    record_offset: int
    # None once a later record has committed this partition.
    value: OffsetCommitValue | None


class PendingOffsets:
    """By producer, and by group for lookups. No level is ever empty."""

    def __init__(self) -> None:
        self._producers: dict[int, dict[OffsetPlace, _Pending]] = {}
        self._groups: dict[str, dict[TopicPartition, set[int]]] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def add(
        self, producer_id: int, place: OffsetPlace, value: OffsetCommitValue, record_offset: int
    ) -> None:
        self._producers.setdefault(producer_id, {})[place] = _Pending(record_offset, value)
        partitions = self._groups.setdefault(place.group_id, {})
        partitions.setdefault(place[1:], set()).add(producer_id)

    def of_group(self, group_id: str) -> dict[TopicPartition, set[int]]:
        return self._groups.get(group_id, {})

    def values(self, group_id: str) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
        """The pending offsets, and their partitions."""
        for partition, producers in self.of_group(group_id).items():
            for producer_id in producers:
                found = self._producers[producer_id][OffsetPlace(group_id, *partition)]
                if found.value is not None:
                    yield partition, found.value

    def committed(self, place: OffsetPlace, record_offset: int) -> None:
        """A record has committed this partition: older pending offsets are obsolete."""
        for producer_id in self._of(place):
            pending = self._producers[producer_id]
            if pending[place].record_offset < record_offset:
                pending[place] = _Pending(pending[place].record_offset, None)

    def forget(self, place: OffsetPlace) -> None:
        """A tombstone: nothing pending here will be committed."""
        for producer_id in tuple(self._of(place)):
            self._drop(producer_id, place)

    def end(self, producer_id: int) -> list[tuple[OffsetPlace, _Pending]]:
        """The transaction has ended; returns what was pending and still counts."""
        found = list(self._producers.get(producer_id, {}).items())
        for place, _ in found:
            self._drop(producer_id, place)
        return [(place, pending) for place, pending in found if pending.value is not None]

    def _of(self, place: OffsetPlace) -> set[int]:
        return self._groups.get(place.group_id, {}).get(place[1:], set())

    def _drop(self, producer_id: int, place: OffsetPlace) -> None:
        pending = self._producers[producer_id]
        del pending[place]
        if not pending:
            del self._producers[producer_id]
        partitions = self._groups[place.group_id]
        producers = partitions[place[1:]]
        producers.discard(producer_id)
        if not producers:
            del partitions[place[1:]]
            if not partitions:
                del self._groups[place.group_id]
