"""Leader epochs of a partition: each begins at an offset, later ones higher. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from skylog.log.checkpoints import EpochStart

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    """``(epoch, start offset)`` in ascending order of both."""

    __slots__ = ("_starts",)

    def __init__(self, starts: Iterable[EpochStart] = ()) -> None:
        self._starts: list[EpochStart] = []
        for epoch, start in starts:
            self.assign(epoch, start)

    def __iter__(self) -> Iterator[EpochStart]:
        return iter(self._starts)

    @property
    def latest(self) -> int:
        return self._starts[-1][0] if self._starts else NO_EPOCH

    @property
    def earliest(self) -> EpochStart | None:
        return self._starts[0] if self._starts else None

    def assign(self, epoch: int, start: int) -> bool:
        """Record that ``epoch`` begins at ``start``; False if that is already known."""
        starts = self._starts
        if starts and starts[-1][0] == epoch and start >= starts[-1][1]:
            return False
        while starts and (starts[-1][0] >= epoch or starts[-1][1] >= start):
            starts.pop()
        starts.append((epoch, start))
        return True

    def of(self, offset: int) -> int:
        """The epoch in which ``offset`` was or would be written."""
        slot = bisect_right(self._starts, offset, key=lambda entry: entry[1]) - 1
        return self._starts[slot][0] if slot >= 0 else NO_EPOCH

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch ≤ ``epoch`` and its end, as Kafka answers followers."""
        if epoch == NO_EPOCH or not self._starts or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        slot = bisect_right(self._starts, epoch, key=lambda entry: entry[0])
        end = self._starts[slot][1]
        return (self._starts[slot - 1][0] if slot else epoch), end

    def truncate_end(self, end_offset: int) -> bool:
        """Drop epochs that begin at or after ``end_offset``; True if there were any."""
        kept = [entry for entry in self._starts if entry[1] < end_offset]
        changed = len(kept) < len(self._starts)
        self._starts = kept
        return changed

    def truncate_start(self, start_offset: int) -> bool:
        """Let the epoch that contains ``start_offset`` begin there, and drop older ones."""
        slot = bisect_right(self._starts, start_offset, key=lambda entry: entry[1]) - 1
        if slot < 0 or (slot == 0 and self._starts[0][1] == start_offset):
            return False
        self._starts[: slot + 1] = [(self._starts[slot][0], start_offset)]
        return True

    def clear(self) -> None:
        self._starts.clear()
