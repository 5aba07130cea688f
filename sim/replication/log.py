"""A partition's log in memory, with a model of crashes. Stands in for ``log.log.Log``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.checkpoints import EpochStart
from skylog.log.config import LogConfig
from skylog.log.epochs import LeaderEpochs
from skylog.log.verification import Origin

Record = tuple[int, int]  # leader epoch, value


@dataclass(slots=True)
class SimBatch:
    """Records of one append; offsets and epoch come from the leader's log."""

    values: list[int]
    base_offset: int = -1
    leader_epoch: int = -1

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def last_offset(self) -> int:
        return self.base_offset + len(self.values) - 1


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class SimSegment:
    """A remote segment: its records, and all epochs of the log up to its end."""

    start: int
    records: tuple[Record, ...]
    epochs: tuple[EpochStart, ...]

    @property
    def end_offset(self) -> int:
        """Inclusive."""
        return self.start + len(self.records) - 1

    def at(self, epoch: int, offset: int) -> Record | None:
        if not self.start <= offset <= self.end_offset:
            return None
        record = self.records[offset - self.start]
        return record if record[0] == epoch else None


Remote = list[SimSegment]


def remote_segment(remote: Sequence[SimSegment], epoch: int, offset: int) -> SimSegment | None:
    """The one that reaches furthest of those with that record."""
    found = [one for one in remote if one.at(epoch, offset) is not None]
    return max(found, key=lambda one: one.end_offset, default=None)


@dataclass(slots=True)
class SimLog:
    """Offsets are dense; ``records`` begins at ``base``, and what is below is remote."""

    config: LogConfig
    remote: Remote = field(default_factory=list)
    base: int = 0
    records: list[Record] = field(default_factory=list)
    log_start_offset: int = 0
    high_watermark: int = 0
    # What survives: a power failure loses what is not synced, any crash loses the high watermark.
    synced_offset: int = 0
    checkpointed: int = 0
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)

    @property
    def appender(self) -> SimLog:
        """Itself: it plays all parts of a log."""
        return self

    companions = trimming = appender

    @property
    def log_end_offset(self) -> int:
        return self.base + len(self.records)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_of(epoch, self.log_end_offset)

    def assign_epoch(self, epoch: int) -> None:
        self.epochs.assign(epoch, self.log_end_offset)

    @property
    def local_log_start_offset(self) -> int:
        return self.base

    @property
    def size(self) -> int:
        return len(self.records)

    def epoch_of(self, offset: int) -> int:
        return self.epochs.of(offset)

    def at(self, offset: int) -> Record | None:
        """As a reader of this replica gets it."""
        index = offset - self.base
        if index >= 0:
            return self.records[index] if index < len(self.records) else None
        epoch = self.epochs.of(offset)
        segment = remote_segment(self.remote, epoch, offset)
        return None if segment is None else segment.at(epoch, offset)

    def remote_end(self) -> int:
        """From the local start up to here, everything is remote."""
        end = self.base
        while (segment := remote_segment(self.remote, self.epochs.of(end), end)) is not None:
            leaves = (o for o in range(end, segment.end_offset + 1) if not self._agrees(segment, o))
            after = next(leaves, segment.end_offset + 1)
            if after >= self.log_end_offset:
                return self.log_end_offset
            end = after
        return end

    def _agrees(self, segment: SimSegment, offset: int) -> bool:
        return segment.at(self.epochs.of(offset), offset) is not None

    def copy(self, end: int) -> bool:
        """Copy what is not remote yet; ``end`` is exclusive."""
        start = self.remote_end()
        if start >= min(end, self.log_end_offset):
            return False
        records = tuple(self.records[start - self.base : end - self.base])
        epochs = tuple(one for one in self.epochs if one[1] < end)
        self.remote.append(SimSegment(start, records, epochs))
        return True

    def drop_local(self, offset: int) -> None:
        """Local retention."""
        if offset > self.base:
            del self.records[: offset - self.base]
            self.base = offset

    def restore(self, epochs: Sequence[EpochStart]) -> None:
        """As ``log.restoring.restore`` does."""
        self.epochs = LeaderEpochs(epochs)
        self.epochs.truncate_start(self.log_start_offset)

    def append(
        self, batches: Sequence[SimBatch], epoch: int, now_ms: int, origin: Origin
    ) -> Appended:
        first = self.log_end_offset
        for batch in batches:
            batch.base_offset, batch.leader_epoch = self.log_end_offset, epoch
            self._write(batch)
        return Appended(first, self.log_end_offset - 1)

    def append_as_follower(
        self, batches: Sequence[SimBatch], now_ms: int, buffer: memoryview
    ) -> None:
        for batch in batches:
            if batch.base_offset != self.log_end_offset:
                raise KafkaError(ErrorCode.INVALID_RECORD, f"{batch} at {self.log_end_offset}")
            self._write(batch)

    def _write(self, batch: SimBatch) -> None:
        if batch.leader_epoch > self.epochs.latest:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self.records += [(batch.leader_epoch, value) for value in batch.values]

    def read(self, offset: int, count: int) -> list[SimBatch]:
        """A few records from ``offset``, one to a batch."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset < self.base:
            raise KafkaError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
        found = self.records[offset - self.base : offset - self.base + count]
        return [
            SimBatch([value], offset + number, epoch) for number, (epoch, value) in enumerate(found)
        ]

    def delete_records_before(self, offset: int) -> int:
        if offset > self.log_start_offset:
            self.drop_local(offset)
            self.log_start_offset = offset
            self.high_watermark = max(self.high_watermark, offset)
            self.epochs.truncate_start(offset)
        return self.log_start_offset

    def follow_start(self, offset: int) -> bool:
        if offset <= self.log_start_offset:
            return False
        self.delete_records_before(min(offset, self.high_watermark))
        return True

    def truncate_to(self, offset: int) -> None:
        if offset < self.base:
            kept = [one for one in self.epochs if one[1] < offset]
            self.truncate_fully_and_start_at(offset, min(self.log_start_offset, offset))
            self.epochs = LeaderEpochs(kept)
            return
        del self.records[offset - self.base :]
        self.epochs.truncate_end(self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.synced_offset = min(self.synced_offset, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        self.base = self.high_watermark = self.synced_offset = offset
        self.log_start_offset = offset if log_start is None else log_start
        self.records.clear()
        self.epochs.clear()

    def sync(self) -> None:
        self.synced_offset = self.log_end_offset
        self.checkpointed = self.high_watermark

    def crash(self, *, power: bool) -> None:
        """What the next start finds."""
        if power:
            self.truncate_to(max(self.synced_offset, self.base))
        low, high = self.base, self.log_end_offset
        self.high_watermark = min(max(self.checkpointed, low), high)
