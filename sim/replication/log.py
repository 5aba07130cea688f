"""A partition's log in memory, with a model of crashes. Stands in for ``log.log.Log``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
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


@dataclass(slots=True)
class SimLog:
    """Offsets are dense; ``records`` begins at ``base``."""

    config: LogConfig
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
    def local_log_start_offset(self) -> int:
        return self.log_start_offset

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_of(epoch, self.log_end_offset)

    def assign_epoch(self, epoch: int) -> None:
        self.epochs.assign(epoch, self.log_end_offset)

    def at(self, offset: int) -> Record | None:
        index = offset - self.base
        return self.records[index] if 0 <= index < len(self.records) else None

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
        found = self.records[offset - self.base : offset - self.base + count]
        return [
            SimBatch([value], offset + number, epoch) for number, (epoch, value) in enumerate(found)
        ]

    def delete_records_before(self, offset: int) -> int:
        if offset > self.log_start_offset:
            del self.records[: offset - self.base]
            self.base = self.log_start_offset = offset
            self.high_watermark = max(self.high_watermark, offset)
            self.epochs.truncate_start(offset)
        return self.log_start_offset

    def truncate_to(self, offset: int) -> None:
        if offset < self.base:
            self.truncate_fully_and_start_at(offset)
            return
        del self.records[offset - self.base :]
        self.epochs.truncate_end(self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.synced_offset = min(self.synced_offset, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        self.base = self.log_start_offset = self.high_watermark = self.synced_offset = offset
        self.records.clear()
        self.epochs.clear()

    def sync(self) -> None:
        self.synced_offset = self.log_end_offset
        self.checkpointed = self.high_watermark

    def crash(self, *, power: bool) -> None:
        """What the next start finds."""
        if power:
            self.truncate_to(max(self.synced_offset, self.base))
        low, high = self.log_start_offset, self.log_end_offset
        self.high_watermark = min(max(self.checkpointed, low), high)
