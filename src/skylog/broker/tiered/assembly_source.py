"""A diskless partition as the source of remote segments, which are put together here.

The coordinator alone knows the partition's offsets; what it said last is in ``info``. Its log is
what a classic replica has on its disk: it begins at the WAL start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from skylog.diskless.plane import LogInfo
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.epochs import LeaderEpochs
from skylog.tiered.retention import Limits

if TYPE_CHECKING:
    from skylog.diskless.plane import ControlPlane
    from skylog.log.checkpoints import EpochStart
    from skylog.log.closed import ClosedSegment
    from skylog.log.config import LogConfig
    from skylog.log.producers import ProducerEntry
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import SegmentFiles
    from skylog.tiered.segments import TopicIdPartition

NOT_LEADING: Final = -1
# All batches of diskless partitions are of one epoch, whoever leads.
_EPOCHS: Final = LeaderEpochs(((SERVED_EPOCH, 0),))


class AssemblySource:
    """Fills ``tiered.ports.CopySource``. All calls come from the event loop."""

    def __init__(
        self, partition: TopicIdPartition, topic: str, config: LogConfig, plane: ControlPlane
    ) -> None:
        self.partition = partition
        self.topic = topic
        self.config = config
        # −1 while another broker leads.
        self.leader_epoch = NOT_LEADING
        self.info = LogInfo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._plane = plane
        self._remote_end = -1

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
        return self.covered_end

    def committed(self, high_watermark: int) -> None:
        """The plane reports a commit, through any broker."""
        if self.knows_start and high_watermark > self.info.high_watermark:
            self.info = self.info._replace(high_watermark=high_watermark)

    async def refresh(self) -> None:
        """Ask the coordinator for the offsets that others may have moved. ``KafkaError``."""
        (info,) = await self._plane.log_info([self.partition])
        if info.error is not ErrorCode.NONE:
            raise KafkaError(info.error)
        self.learn(info)

    def learn(self, info: LogInfo) -> None:
        """What the coordinator said; answers may overtake each other, and no offset goes back."""
        before = self.info
        self.info = info._replace(
            log_start_offset=max(info.log_start_offset, before.log_start_offset),
            wal_start_offset=max(info.wal_start_offset, before.wal_start_offset),
            high_watermark=max(info.high_watermark, before.high_watermark),
        )

    def pruned(self, wal_start_offset: int) -> None:
        """The coordinator has let go of what is below."""
        start = max(wal_start_offset, self.info.wal_start_offset)
        self.info = self.info._replace(wal_start_offset=start)

    # -- segments to copy ----------------------------------------------------------------------

    @property
    def closed_end(self) -> int:
        return self.covered_end

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        return []

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        raise FileNotFoundError(closed.log)

    def wake_when_stable(self, wake: Callable[[], None]) -> None:
        """What is put together is committed: there are no transactions."""

    def bytes_from(self, offset: int) -> int:
        return 0

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        self._remote_end = remote_end

    # -- retention -----------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """While the WAL has the whole log, the coordinator's own retention sees to it."""
        if self.log_start_offset >= self.local_log_start_offset:
            return Limits()
        return Limits.of(self.config)

    def only_local_bytes(self, remote: RemoteLog) -> int:
        """Of what is in the WAL and remote too, only the bytes in the WAL count."""
        offset, both = self.local_log_start_offset, 0
        while segment := remote.segment_for(SERVED_EPOCH, offset):
            if segment.start_offset >= self.local_log_start_offset:
                both += segment.size
            offset = segment.end_offset + 1
        return self.info.byte_size - both

    # -- the log start -------------------------------------------------------------------------

    async def start_at(self, offset: int) -> int:
        """The coordinator moves the log start, and only forwards."""
        request = *self.partition, offset
        (result,) = await self._plane.delete_records([request])
        if result.error is not ErrorCode.NONE:
            raise KafkaError(result.error)
        start = max(result.low_watermark, self.info.log_start_offset)
        wal_start = max(start, self.info.wal_start_offset)
        self.info = self.info._replace(log_start_offset=start, wal_start_offset=wal_start)
        return start

    @property
    def knows_start(self) -> bool:
        return self.info.error is ErrorCode.NONE

    async def learn_start(self, offset: int) -> None:
        """The coordinator knows better than the remote log."""
        await self.refresh()

    def prepared(self) -> None:
        """Reads are never held back: the coordinator answers them."""

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
