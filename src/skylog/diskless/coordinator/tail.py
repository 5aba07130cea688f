"""The latest batches of a coordinator's partitions in memory: what nearly all finds ask for. Pure.

It follows the committed state turn by turn and never knows more than that. What it does not know,
because it was committed before the coordinator was loaded or has been pushed out, is asked of the
state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from skylog.diskless.plane import BatchCoordinate, TopicPartition
from skylog.diskless.planes.rules import LogState
from skylog.kernel.ids import Uuid

_last_offset: Final = attrgetter("last_offset")


class NotInTail(LookupError):  # noqa: N818 - an answer, not a failure
    """Only the state knows."""


@dataclass(slots=True)
class Changed:
    """A partition after a turn, None if it is gone, and the batches that it got in it."""

    log: LogState | None = None
    added: list[BatchCoordinate] = field(default_factory=list)


class _Partition:
    __slots__ = ("batches", "log")

    def __init__(self, log: LogState) -> None:
        self.log = log
        # All from the first of them up to the high watermark.
        self.batches: list[BatchCoordinate] = []


class Tail:
    """As much of a ``StateView`` as a find needs; bounded by batches, the oldest go first."""

    def __init__(self, batches_max: int) -> None:
        self._batches_max = batches_max
        self._partitions: dict[TopicPartition, _Partition] = {}
        # What was added, in that order, by partition and last offset.
        self._added: deque[tuple[TopicPartition, int]] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def log(self, partition: TopicPartition) -> LogState:
        return self._known(partition).log

    def batches(self, partition: TopicPartition, from_offset: int) -> Iterator[BatchCoordinate]:
        """By offset, from the batch that holds ``from_offset`` on."""
        batches = self._known(partition).batches
        if not batches or from_offset < batches[0].base_offset:
            raise NotInTail
        for at in range(bisect_left(batches, from_offset, key=_last_offset), len(batches)):
            yield batches[at]

    def _known(self, partition: TopicPartition) -> _Partition:
        known = self._partitions.get(partition)
        if known is None:
            raise NotInTail
        return known

    def follow(self, changed: Mapping[TopicPartition, Changed], deleted: Iterable[Uuid]) -> None:
        """What a turn has done: to partitions, and to whole topics."""
        for partition, one in changed.items():
            self._changed(partition, one.log, one.added)
        for topic_id in deleted:
            for partition in [known for known in self._partitions if known[0] == topic_id]:
                self._changed(partition, None, ())

    def _changed(
        self, partition: TopicPartition, log: LogState | None, added: Sequence[BatchCoordinate]
    ) -> None:
        known = self._partitions.get(partition)
        if known is None:
            if log is None or not added:
                return
            known = self._partitions[partition] = _Partition(log)
        if log is None:
            self._drop_below(known, None)
            del self._partitions[partition]
            return
        self._drop_below(known, max(log.log_start_offset, log.wal_start_offset))
        known.log = log
        if added:
            if known.batches and known.batches[-1].last_offset + 1 != added[0].base_offset:
                self._drop_below(known, None)
            known.batches += added
            self._size += len(added)
            self._added.append((partition, added[-1].last_offset))
        # A partition without batches says too little to be worth its place.
        if not known.batches or known.batches[-1].last_offset + 1 != log.high_watermark:
            self._changed(partition, None, ())
        self._shrink()

    def _drop_below(self, known: _Partition, offset: int | None) -> None:
        count = len(known.batches)
        if offset is not None:
            count = bisect_left(known.batches, offset, key=_last_offset)
        del known.batches[:count]
        self._size -= count

    def _shrink(self) -> None:
        limit = self._batches_max
        while self._size > limit or len(self._added) > limit:
            partition, last_offset = self._added.popleft()
            known = self._partitions.get(partition)
            if known is not None:
                self._drop_below(known, last_offset + 1)
                if not known.batches:
                    del self._partitions[partition]
