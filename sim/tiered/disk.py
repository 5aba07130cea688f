"""The log of one replica: a disk that survives its broker. A record is its offset and epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sim.tiered.waiting import turn
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.checkpoints import EpochStart
from skylog.log.closed import ClosedSegment
from skylog.log.config import LogConfig
from skylog.log.epochs import LeaderEpochs
from skylog.log.producers import ProducerEntry
from skylog.tiered.copying import epoch_checkpoint
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.retention import Limits

SEGMENT_RECORDS = 4
RECORD_BYTES = 100

# (epoch, timestamp); the offset is its place.
Record = tuple[int, int]


@dataclass(slots=True)
class Segment:
    base_offset: int
    records: list[Record] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.records)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


class SimLog:
    """Implements ``tiered.ports.CopySource``."""

    def __init__(self, clock: Clock, config: LogConfig) -> None:
        self._clock = clock
        self.config = config
        self.segments = [Segment(0)]
        self.epochs = LeaderEpochs()
        self.log_start_offset = 0
        # What is lost with the process, and what the leader tells.
        self.high_watermark = 0
        self.open_transaction: int | None = None
        self.remote_end = 0
        self.highest_remote_offset = -1
        self.is_held = False

    # --- Records ------------------------------------------------------------------------------

    @property
    def log_end_offset(self) -> int:
        return self.segments[-1].end_offset

    @property
    def local_log_start_offset(self) -> int:
        return max(self.segments[0].base_offset, self.log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        first = self.open_transaction
        return self.high_watermark if first is None else min(first, self.high_watermark)

    @property
    def has_records(self) -> bool:
        return any(segment.records for segment in self.segments)

    def record(self, offset: int) -> Record | None:
        slot = bisect_right(self.segments, offset, key=_base_offset) - 1
        if slot < 0 or offset >= self.segments[slot].end_offset:
            return None
        segment = self.segments[slot]
        return segment.records[offset - segment.base_offset]

    def append(self, record: Record) -> None:
        if len(self.segments[-1].records) >= SEGMENT_RECORDS:
            self.roll()
        self.epochs.assign(record[0], self.log_end_offset)
        self.segments[-1].records.append(record)

    def roll(self) -> None:
        if self.segments[-1].records:
            self.segments.append(Segment(self.log_end_offset))

    def truncate_to(self, offset: int) -> None:
        while self.segments and self.segments[-1].base_offset >= offset:
            self.segments.pop()
        if self.segments:
            last = self.segments[-1]
            del last.records[offset - last.base_offset :]
        else:
            self.segments = [Segment(offset)]
        self.log_start_offset = min(self.log_start_offset, offset)
        self.epochs.truncate_end(offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.remote_end = min(self.remote_end, offset)

    def restart_at(self, offset: int, log_start: int, epochs: Sequence[EpochStart]) -> None:
        self.segments = [Segment(offset)]
        self.epochs = LeaderEpochs(epochs)
        self.log_start_offset = log_start
        self.high_watermark = offset

    def lose_epochs(self) -> None:
        """The checkpoint is lost: only those of local records are known again."""
        self.epochs = LeaderEpochs()
        for segment in self.segments:
            for number, (epoch, _) in enumerate(segment.records):
                self.epochs.assign(epoch, segment.base_offset + number)

    def droppable(self) -> Segment | None:
        """The first segment, if local retention may drop it."""
        if len(self.segments) < 2:
            return None
        end = self.segments[1].base_offset
        return self.segments[0] if end <= max(self.remote_end, self.log_start_offset) else None

    def drop_first(self) -> None:
        del self.segments[0]

    def move_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_start(offset)
            while len(self.segments) > 1 and self.segments[1].base_offset <= offset:
                del self.segments[0]

    # --- What is copied -----------------------------------------------------------------------

    @property
    def closed_end(self) -> int:
        bases = [segment.base_offset for segment in self.segments]
        return max((base for base in bases if base <= self.last_stable_offset), default=bases[0])

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        await turn()
        found = []
        for segment, following in zip(self.segments, self.segments[1:], strict=False):
            end = following.base_offset
            if from_offset < end <= self.last_stable_offset:
                newest = max((record[1] for record in segment.records), default=-1)
                size = len(segment.records) * RECORD_BYTES
                paths = ("log", "index", "timeindex", None, "snapshot")
                found.append(ClosedSegment(segment.base_offset, end, size, newest, *paths))
        return found

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        epochs = epoch_checkpoint(self.epochs, closed.next_offset)
        return SegmentFiles("log", "index", "timeindex", None, "snapshot", epochs)

    async def prepare(self, segment: ClosedSegment) -> None: ...

    def wake_when_stable(self, wake: Callable[[], None]) -> None: ...

    def bytes_from(self, offset: int) -> int:
        kept = [segment for segment in self.segments if segment.base_offset >= offset]
        return sum(len(segment.records) for segment in kept) * RECORD_BYTES

    def only_local_bytes(self, remote: RemoteLog) -> int:
        lineage = Lineage(self.epochs, self.log_end_offset)
        return self.bytes_from(lineage.highest_remote_offset(remote).offset + 1)

    @property
    def limits(self) -> Limits:
        return Limits.of(self.config)

    async def refresh(self) -> None: ...

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        self.highest_remote_offset = highest_offset
        self.remote_end = min(remote_end, self.log_end_offset)

    async def start_at(self, offset: int) -> int:
        await turn()
        if offset > self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.move_start(offset)
        await turn()
        return self.log_start_offset

    def prepared(self) -> None:
        self.is_held = False

    @property
    def knows_start(self) -> bool:
        return True  # this disk forgets whole logs only

    async def learn_start(self, offset: int) -> None:
        raise AssertionError("the log start was known")

    async def restore_epochs(self, epochs: Sequence[EpochStart]) -> None:
        await turn()
        self.epochs = LeaderEpochs(epochs)

    async def rebuild(
        self,
        next_offset: int,
        log_start_offset: int,
        epochs: Sequence[EpochStart],
        producers: Sequence[ProducerEntry],
    ) -> None:
        await turn()
        latest = self.epochs.latest
        self.restart_at(next_offset, log_start_offset, epochs)
        self.epochs.assign(latest, next_offset)
