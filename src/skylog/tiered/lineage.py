"""The leader epochs of a log, each with the offsets that belong to it. Pure.

A remote segment counts for a log only where its epochs and offsets are those of the log: after an
unclean election the object store may hold records that no replica has any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from skylog.log.checkpoints import EpochStart
from skylog.log.epochs import NO_EPOCH, NO_OFFSET
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.segments import RemoteSegment, SegmentState


class EpochRun(NamedTuple):
    """The offsets of one epoch; ``end`` is exclusive."""

    epoch: int
    start: int
    end: int


class OffsetAndEpoch(NamedTuple):
    offset: int
    epoch: int


class Lineage:
    """A value: the log's epochs at one moment, bounded by its end."""

    __slots__ = ("_epochs", "_starts", "log_end_offset")

    def __init__(self, epochs: Iterable[EpochStart], log_end_offset: int) -> None:
        """``epochs`` is a log's ``LeaderEpochs``, or what an index of it says."""
        entries = list(epochs)
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self.log_end_offset = log_end_offset

    def __iter__(self) -> Iterator[EpochRun]:
        """Newest first."""
        return map(self._run, reversed(range(len(self._epochs))))

    def oldest_first(self) -> Iterator[EpochRun]:
        return map(self._run, range(len(self._epochs)))

    def _run(self, slot: int) -> EpochRun:
        last = slot + 1 == len(self._starts)
        end = self.log_end_offset if last else self._starts[slot + 1]
        return EpochRun(self._epochs[slot], self._starts[slot], end)

    @property
    def earliest_epoch(self) -> int:
        return self._epochs[0] if self._epochs else NO_EPOCH

    @property
    def latest_epoch(self) -> int:
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def epoch_of(self, offset: int) -> int | None:
        """The epoch of an offset below the log's end; None below the first epoch."""
        run = self.run_at(offset)
        return None if run is None else run[0]

    def run_at(self, offset: int) -> tuple[int, int] | None:
        """The epoch of an offset of the log, and the end (exclusive) of that epoch."""
        slot = bisect_right(self._starts, offset) - 1
        if slot < 0 or offset >= self.log_end_offset:
            return None
        run = self._run(slot)
        return run.epoch, run.end

    def contains(self, segment: RemoteSegment) -> bool:
        """Whether a segment is part of this log: Kafka's ``isRemoteSegmentWithinLeaderEpochs``.

        Epochs of the segment before the log's first one do not matter: expiry has cut them off.
        """
        if segment.end_offset >= self.log_end_offset:
            return False
        runs = _epochs_with_records(segment)
        if not self._epochs or not runs:
            return False
        runs = [run for run in runs if run[0] >= self.earliest_epoch]
        if not runs:
            return False
        ends = [start for _, start in runs[1:]] + [segment.end_offset + 1]
        for number, ((epoch, start), end) in enumerate(zip(runs, ends, strict=True)):
            ours = self._of_epoch(epoch)
            if ours is None:
                return False
            is_first_of_log = epoch == self.earliest_epoch
            if number == 0 and not is_first_of_log and start < ours.start:
                return False
            if number > 0 and start != ours.start:
                return False
            is_last = number + 1 == len(runs)
            if end > ours.end if is_last else end != ours.end:
                return False
        return True

    def _of_epoch(self, epoch: int) -> EpochRun | None:
        slot = bisect_right(self._epochs, epoch) - 1
        if slot < 0 or self._epochs[slot] != epoch:
            return None
        return self._run(slot)

    def highest_remote_offset(self, remote: RemoteLog) -> OffsetAndEpoch:
        """Kafka's highest remote offset (inclusive), and its epoch; −1 and −1 if there is none."""
        for run in self:
            highest = remote.highest_offset(run.epoch)
            if highest is not None:
                return OffsetAndEpoch(min(highest, run.end - 1), run.epoch)
        return OffsetAndEpoch(NO_OFFSET, NO_EPOCH)

    def told_start(self, remote: RemoteLog) -> int:
        """The log start that records carry, as far as it concerns this log; −1: none does.

        What a leader said counts up to where the log has records of later epochs: after an unclean
        election those may lie below it, and are not what was deleted.
        """
        told = (min(start, self._end_after(epoch)) for epoch, start in remote.log_starts)
        return max(told, default=NO_OFFSET)

    def _end_after(self, epoch: int) -> int:
        """Where the records of later epochs begin."""
        slot = bisect_right(self._epochs, epoch)
        return self._starts[slot] if slot < len(self._starts) else self.log_end_offset

    def log_start_from(self, remote: RemoteLog, local_log_start_offset: int) -> int:
        """The log start that the metadata topic knows; −1 if it knows of no finished segment.

        Where no record carries one, Kafka's rule: the start of the earliest segment. But what is
        local is there, whether it was copied or not. Kafka goes by its rule even if the metadata
        topic has lost everything: then all that is remote would be given up for good.
        """
        if remote.log_starts:
            return self.told_start(remote)
        for run in self.oldest_first():
            for segment in remote.segments(run.epoch):
                if segment.state is not SegmentState.DELETE_STARTED:
                    return min(segment.start_offset, local_log_start_offset)
        return local_log_start_offset if remote.highest_offsets() else NO_OFFSET


def _epochs_with_records(segment: RemoteSegment) -> list[EpochStart]:
    following = [start for _, start in segment.epochs[1:]] + [segment.end_offset + 1]
    return [
        entry
        for entry, next_start in zip(segment.epochs, following, strict=True)
        if entry[1] < next_start
    ]
