"""The latest batches of a coordinator's partitions in memory, which serve nearly all finds. Pure.

It follows the committed state turn by turn and is never ahead of it. What it does not have, because
it was committed before the coordinator was loaded or has been evicted, is read from the state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from struct import Struct
from typing import Final

from skylog.diskless.batch import Accepted, BatchCoordinate, Committed
from skylog.diskless.coordinator.state import batch_id
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.ids import Uuid

_last_offset: Final = attrgetter("last_offset")
_stamped_last_offset: Final = attrgetter("stamp.last_offset")
# A position in an object, and a stamp.
_BATCH: Final = Struct("=iiqqqqbb")


class NotInTail(LookupError):  # noqa: N818 - an answer, not a failure
    """Only the state can answer."""


class Added:
    """What the commit at ``log_offset`` has added to a partition: at least one batch.

    Packed, so that tens of thousands of them cost the garbage collector nothing.
    """

    __slots__ = ("_log_offset", "_object_key", "_packed", "base_offset", "last_offset")

    def __init__(
        self, object_key: str, log_offset: int, batches: Sequence[Committed | Accepted]
    ) -> None:
        self._object_key = object_key
        self._log_offset = log_offset
        self.base_offset = batches[0][1].base_offset
        self.last_offset = batches[-1][1].last_offset
        self._packed = b"".join(
            [_BATCH.pack(batch[0].byte_offset, batch[0].byte_size, *batch[1]) for batch in batches]
        )

    def __len__(self) -> int:
        return len(self._packed) // _BATCH.size

    def coordinates(self) -> list[BatchCoordinate]:
        key, log_offset = self._object_key, self._log_offset
        return [
            BatchCoordinate.of_row((batch_id(log_offset, found[0]), key, *found))
            for found in _BATCH.iter_unpack(self._packed)
        ]


@dataclass(slots=True)
class Changed:
    """A partition after a turn (None if it was deleted), and what was added to it."""

    log: LogState | None = None
    added: list[Added] = field(default_factory=list)


class _Partition:
    __slots__ = ("added", "log")

    def __init__(self, log: LogState) -> None:
        self.log = log
        # Contiguous, up to the high watermark.
        self.added: list[Added] = []


class Tail:
    """The part of a ``StateView`` that finds need; limited in batches, the oldest go first."""

    def __init__(self, batches_max: int) -> None:
        self._batches_max = batches_max
        self._partitions: dict[TopicPartition, _Partition] = {}
        # Additions in their order, by partition and last offset.
        self._order: deque[tuple[TopicPartition, int]] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def log(self, partition: TopicPartition) -> LogState:
        return self._known(partition).log

    def batches(self, partition: TopicPartition, from_offset: int) -> Iterator[BatchCoordinate]:
        """By offset, from the batch that contains ``from_offset``."""
        added = self._known(partition).added
        if from_offset < added[0].base_offset:
            raise NotInTail
        first = bisect_left(added, from_offset, key=_last_offset)
        for place in range(first, len(added)):
            coordinates = added[place].coordinates()
            if place == first:
                at = bisect_left(coordinates, from_offset, key=_stamped_last_offset)
                coordinates = coordinates[at:]
            yield from coordinates

    def _known(self, partition: TopicPartition) -> _Partition:
        known = self._partitions.get(partition)
        if known is None:
            raise NotInTail
        return known

    def follow(self, changed: Mapping[TopicPartition, Changed], deleted: Iterable[Uuid]) -> None:
        """The effects of a turn: on partitions, and on whole topics."""
        for partition, one in changed.items():
            self._change(partition, one)
        for topic_id in deleted:
            for partition in [known for known in self._partitions if known[0] == topic_id]:
                self._forget(partition)
        limit = self._batches_max
        while self._size > limit or len(self._order) > limit:
            partition, last_offset = self._order.popleft()
            self._drop_below(partition, last_offset + 1)

    def _change(self, partition: TopicPartition, changed: Changed) -> None:
        log, added = changed.log, changed.added
        if log is None:
            self._forget(partition)
            return
        self._drop_below(partition, max(log.log_start_offset, log.wal_start_offset))
        known = self._partitions.get(partition)
        if known is not None:
            known.log = log
        for one in added:
            if known is None or known.added[-1].last_offset + 1 != one.base_offset:
                self._forget(partition)
                known = self._partitions[partition] = _Partition(log)
            known.added.append(one)
            self._size += len(one)
            self._order.append((partition, one.last_offset))
        if known is not None and known.added[-1].last_offset + 1 != log.high_watermark:
            self._forget(partition)

    def _forget(self, partition: TopicPartition) -> None:
        known = self._partitions.pop(partition, None)
        if known is not None:
            self._size -= sum(map(len, known.added))

    def _drop_below(self, partition: TopicPartition, offset: int) -> None:
        """Drop batches that end below an offset; a partition without batches is unknown."""
        known = self._partitions.get(partition)
        if known is None:
            return
        count = bisect_left(known.added, offset, key=_last_offset)
        self._size -= sum(map(len, known.added[:count]))
        del known.added[:count]
        if not known.added:
            del self._partitions[partition]
