"""A diskless partition as the source of remote segments, which are put together here.

The coordinator alone knows the partition's offsets; what it said last is in ``info``. Its log is
what a classic replica has on its disk: it begins at the WAL start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from skylog.diskless.plane import LogInfo
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.log.epochs import LeaderEpochs
from skylog.tiered.consolidation.assembler import PASSING
from skylog.tiered.copying import epoch_checkpoint
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.retention import Limits

if TYPE_CHECKING:
    from skylog.broker.tiered.log_infos import LogInfos
    from skylog.diskless.plane import ControlPlane
    from skylog.kernel.clock import Clock
    from skylog.log.checkpoints import EpochStart
    from skylog.log.closed import ClosedSegment
    from skylog.log.config import LogConfig
    from skylog.log.producers import ProducerEntry
    from skylog.tiered.consolidation.assembler import Assembler
    from skylog.tiered.consolidation.assembly import Assembly, ClosedPart
    from skylog.tiered.consolidation.snapshots import ProducerSnapshots
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.segments import TopicIdPartition

_log = get_logger("tiered.consolidation")
NOT_LEADING: Final = -1
UNKNOWN: Final = LogInfo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
AGAIN_SECONDS: Final = 1.0
AGAIN_SECONDS_MAX: Final = 60.0
# A topic that was just created is not known to its coordinator at once.
ATTEMPTS: Final = 20
ATTEMPT_SECONDS: Final = 0.1
# All batches of diskless partitions are of one epoch, whoever leads.
_EPOCHS: Final = LeaderEpochs(((SERVED_EPOCH, 0),))


class Lag(NamedTuple):
    """What of a partition is not remote yet; seconds since the oldest of it was produced."""

    records: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class AssemblyPorts:
    """What all sources share."""

    plane: ControlPlane
    infos: LogInfos
    assembler: Assembler
    snapshots: ProducerSnapshots
    clock: Clock
    # There is a segment to copy.
    rolled: Callable[[TopicIdPartition], None]
    # Expiry has something to look at: segments below the log start, or a tiered-only part.
    start_moved: Callable[[TopicIdPartition], None]


class AssemblySource:
    """Fills ``tiered.ports.CopySource``. All calls come from the event loop."""

    def __init__(
        self, partition: TopicIdPartition, topic: str, config: LogConfig, ports: AssemblyPorts
    ) -> None:
        self.partition = partition
        self.topic = topic
        # −1 while another broker leads.
        self.leader_epoch = NOT_LEADING
        self.info = UNKNOWN
        self.config = config
        self._ports = ports
        self._remote_end = -1
        self._is_prepared = False
        self._assembly: Assembly | None = None
        # What was heard of commits before the coordinator was asked.
        self._heard = -1
        # Since when there are records that are not remote.
        self._behind_since_ms = -1
        # How far files were released.
        self._released_end = -1
        # Assemblies in a row that could not go on.
        self._losses = 0

    # -- leadership ----------------------------------------------------------------------------

    def configure(self, config: LogConfig) -> None:
        self.config = config
        if self._assembly is not None:
            self._ports.assembler.configure(self._assembly, self.config)
        self._review()

    def led(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch

    def unled(self) -> None:
        """What was put together here goes: the next leader begins with the WAL. Should that be this
        one again, it asks for the offsets that others have moved."""
        self.leader_epoch = NOT_LEADING
        self._is_prepared = False
        self.info = UNKNOWN
        self._remote_end = self._released_end = self._behind_since_ms = -1
        self._losses = 0
        self._review()

    @property
    def _assembles(self) -> bool:
        config = self.config
        return self._is_prepared and config.copies and config.tiering_assembler == "broker"

    def _review(self) -> None:
        """Begin to put together, or end."""
        if not self._assembles:
            self._drop()
        elif self._assembly is None:
            self._begin()

    def _drop(self) -> None:
        if self._assembly is not None:
            self._ports.assembler.drop(self._assembly)
            self._assembly = None

    def _begin(self, *, after_seconds: float = 0.0) -> None:
        assembler = self._ports.assembler
        self._drop()
        self._assembly = assembler.begin(
            self,
            self.partition,
            self.topic,
            self.covered_end,
            self.config,
            after_seconds=after_seconds,
        )
        assembler.committed(self._assembly, self.info.high_watermark)

    # -- what is known of the partition --------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        return self.info.log_start_offset

    @property
    def local_log_start_offset(self) -> int:
        return self.info.wal_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.info.high_watermark

    @property
    def has_records(self) -> bool:
        """There is nothing to set up here: the coordinator has the log's end and its producers."""
        return True

    @property
    def epochs(self) -> LeaderEpochs:
        return _EPOCHS

    @property
    def covered_end(self) -> int:
        """The end of the gapless run of remote segments from the WAL start on."""
        return max(self._remote_end, self.local_log_start_offset)

    @property
    def assembled_end(self) -> int:
        """The end of what was put together, copied or not."""
        end = self.covered_end
        return end if self._assembly is None else max(end, self._assembly.position)

    @property
    def lag(self) -> Lag:
        """As far as this broker knows, which leads; bytes that were not read are an estimate."""
        info = self.info
        # All counts that is not known to be remote.
        records = self._heard - max(self.covered_end, 0)
        if records <= 0:
            return Lag()
        assembly = self._assembly
        here = 0 if assembly is None else assembly.counted_bytes
        in_wal = max(info.high_watermark - info.wal_start_offset, 1)
        unread = (self._heard - self.assembled_end) * max(info.byte_size, 0) // in_wal
        oldest_ms = -1 if assembly is None else assembly.oldest_ms
        since_ms = oldest_ms if oldest_ms >= 0 else self._behind_since_ms
        waited_ms = max(self._ports.clock.now_ms() - since_ms, 0) if since_ms >= 0 else 0
        return Lag(records, here + unread, waited_ms / 1000)

    def committed(self, high_watermark: int) -> None:
        """The plane reports a commit, through any broker."""
        self._heard = max(self._heard, high_watermark)
        if self.knows_start:
            self.learn(self.info)
        elif self._behind_since_ms < 0 <= self.leader_epoch:
            self._behind_since_ms = self._ports.clock.now_ms()

    def learn(self, info: LogInfo) -> None:
        """What the coordinator said; answers may overtake each other, and no offset goes back."""
        known = self.info
        start = max(info.log_start_offset, known.log_start_offset)
        wal_start = max(info.wal_start_offset, known.wal_start_offset, start)
        is_overtaken = wal_start > info.wal_start_offset
        self.info = info._replace(
            log_start_offset=start,
            high_watermark=max(info.high_watermark, self._heard),
            # Bytes that left the WAL since would count twice, and expiry goes by them: rather none.
            byte_size=0 if is_overtaken else info.byte_size,
            wal_start_offset=wal_start,
        )
        self._heard = self.info.high_watermark
        if self._behind_since_ms < 0 and self._heard > self.covered_end:
            self._behind_since_ms = self._ports.clock.now_ms()
        if self._assembly is not None:
            self._ports.assembler.committed(self._assembly, self._heard)
        if self.covered_end > self._released_end:
            self._release()
        starts = known.log_start_offset, known.wal_start_offset
        if (start, self.info.wal_start_offset) != starts:
            # Whoever told of it: nobody else wakes expiry in a partition without traffic.
            self._ports.start_moved(self.partition)

    def _release(self) -> None:
        """Files of what is remote, or deleted, go."""
        end = self.covered_end
        if end > self._released_end:
            self._released_end, self._losses = end, 0
        if self._heard <= end:
            self._behind_since_ms = -1
        assembly = self._assembly
        if assembly is not None:
            self._ports.assembler.release(assembly, end)
            if assembly.begins_at < end >= assembly.position:
                self._begin()  # nothing of the open segment is left

    async def refresh(self) -> None:
        """Ask the coordinator for the offsets that others may have moved. ``KafkaError``."""
        for left in reversed(range(ATTEMPTS)):
            info = await self._ports.infos.ask(self.partition)
            if info.error is ErrorCode.NONE:
                self.learn(info)
                return
            if not left or info.error not in PASSING:
                raise KafkaError(info.error)
            await asyncio.sleep(ATTEMPT_SECONDS)

    def pruned(self, wal_start_offset: int) -> None:
        """The coordinator has let go of what is below."""
        if wal_start_offset > self.info.wal_start_offset:
            # How many bytes are left in it, nobody said.
            self.learn(self.info._replace(wal_start_offset=wal_start_offset, byte_size=0))

    # -- what the assembler says ---------------------------------------------------------------

    def heard(self, log_start_offset: int, high_watermark: int) -> None:
        self._heard = max(high_watermark, self._heard)
        self.learn(self.info._replace(log_start_offset=log_start_offset))

    def was_cut(self) -> None:
        self._ports.rolled(self.partition)

    def lost(self, why: str) -> None:
        """Begin again where the remote segments end, after a while: what makes it fail may have
        moved that end by then."""
        _log.warning("assembly dropped", topic=self.topic, partition=self.partition[1], why=why)
        self._begin(after_seconds=min(AGAIN_SECONDS * 2**self._losses, AGAIN_SECONDS_MAX))
        self._losses = min(self._losses + 1, 10)

    # -- segments to copy ----------------------------------------------------------------------

    @property
    def _closed(self) -> Sequence[ClosedPart]:
        return () if self._assembly is None else self._assembly.closed

    @property
    def closed_end(self) -> int:
        closed = self._closed
        return closed[-1].segment.next_offset if closed else self.covered_end

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        fault = next((part.fault for part in self._closed if part.fault is not None), None)
        if fault is not None:
            self._ports.assembler.stats.spoiled += 1
            self.lost(fault)
        found = (part.segment for part in self._closed)
        return [segment for segment in found if segment.next_offset > from_offset]

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        part = next((part for part in self._closed if part.segment == closed), None)
        assembly = self._assembly
        if part is None or assembly is None:
            raise FileNotFoundError(closed.log)
        await self._ports.snapshots.write(assembly, part)
        return SegmentFiles(
            closed.log,
            closed.offset_index,
            closed.time_index,
            closed.transaction_index,
            closed.producer_snapshot,
            epoch_checkpoint(self.epochs, closed.next_offset),
            part.check,
        )

    def wake_when_stable(self, wake: Callable[[], None]) -> None:
        """What is put together is committed: there are no transactions."""

    def bytes_from(self, offset: int) -> int:
        found = (part.segment for part in self._closed)
        return sum(segment.size for segment in found if segment.base_offset >= offset)

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        self._remote_end = remote_end
        self._release()
        assembly = self._assembly
        if assembly is not None and assembly.begins_at < min(remote_end, highest_offset + 1):
            # An older leader's copy was finished after this one had begun.
            self._begin()

    # -- retention -----------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """While the WAL has the whole log, the coordinator's own retention sees to it."""
        if self.log_start_offset >= self.local_log_start_offset:
            return Limits()
        return Limits.of(self.config)

    def only_local_bytes(self, remote: RemoteLog) -> int:
        """Of what is in the WAL and remote too, only the bytes in the WAL count. Of a segment that
        is there in part, all counts as such: rather too little than too much is deleted."""
        offset, both = self.local_log_start_offset, 0
        while segment := remote.segment_for(SERVED_EPOCH, offset):
            both += segment.size
            offset = segment.end_offset + 1
        return self.info.byte_size - both

    # -- the log start -------------------------------------------------------------------------

    async def start_at(self, offset: int) -> int:
        """The coordinator moves the log start, and only forwards."""
        request = *self.partition, offset
        (result,) = await self._ports.plane.delete_records([request])
        if result.error is not ErrorCode.NONE:
            raise KafkaError(result.error)
        self.heard(result.low_watermark, self.info.high_watermark)
        return self.log_start_offset

    @property
    def knows_start(self) -> bool:
        return self.info.error is ErrorCode.NONE

    async def learn_start(self, offset: int) -> None:
        """The coordinator knows better than the remote log."""
        await self.refresh()

    def prepared(self) -> None:
        """Reads are never held back: the coordinator answers them. But now it is known where the
        remote segments end."""
        self._is_prepared = True
        self._review()

    async def restore_epochs(self, epochs: Sequence[EpochStart]) -> None:
        """There is one epoch, and it is never lost."""

    async def rebuild(
        self,
        next_offset: int,
        log_start_offset: int,
        epochs: Sequence[EpochStart],
        producers: Sequence[ProducerEntry],
    ) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "only a coordinator has the log's end")


def as_assembled(config: LogConfig) -> LogConfig:
    """There is no local log that copying could lag behind for."""
    return replace(config, remote_copy_lag_ms=0, remote_copy_lag_bytes=-1)
