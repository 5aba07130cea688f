"""A classic replica as the source of remote segments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from skylog.log.restoring import restore
from skylog.tiered.copying import epoch_checkpoint
from skylog.tiered.lineage import Lineage
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.retention import Limits

if TYPE_CHECKING:
    from skylog.kernel.executor import Executor
    from skylog.log.checkpoints import EpochStart
    from skylog.log.closed import ClosedSegment
    from skylog.log.config import LogConfig
    from skylog.log.epochs import LeaderEpochs
    from skylog.log.manager import LogManager
    from skylog.log.producers import ProducerEntry
    from skylog.replication.partition import Partition
    from skylog.tiered.metadata.machine import RemoteLog


class ReplicaSource:
    """Fills ``tiered.ports.CopySource``."""

    __slots__ = ("_executor", "_logs", "_partition", "_unwatch")

    def __init__(self, partition: Partition, logs: LogManager, executor: Executor) -> None:
        self._partition = partition
        self._logs = logs
        self._executor = executor
        # Set while it waits for the last stable offset.
        self._unwatch: Callable[[], None] | None = None

    @property
    def config(self) -> LogConfig:
        return self._partition.log.config

    @property
    def log_start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def local_log_start_offset(self) -> int:
        return self._partition.log.local_log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def has_records(self) -> bool:
        return self._partition.log.size > 0

    @property
    def epochs(self) -> LeaderEpochs:
        return self._partition.log.companions.epochs

    @property
    def closed_end(self) -> int:
        log = self._partition.log
        segments, stable = log.segments, log.last_stable_offset
        if segments[-1].base_offset <= stable:
            return segments[-1].base_offset
        return segments[max(self._first_unstable() - 1, 0)].base_offset

    def _first_unstable(self) -> int:
        """The first segment that begins above the last stable offset."""
        log = self._partition.log
        return bisect_right(
            log.segments, log.last_stable_offset, key=lambda segment: segment.base_offset
        )

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        log = self._partition.log
        # The last stable offset is for the event loop to ask: that settles transactions.
        work = partial(log.closed_segments, from_offset, log.last_stable_offset)
        return await self._executor.run(work)

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        # A crash, or a full disk, may have taken this one.
        await self._logs.require_snapshot(self._partition.log, closed.next_offset)
        return SegmentFiles(
            closed.log,
            closed.offset_index,
            closed.time_index,
            closed.transaction_index,
            closed.producer_snapshot,
            epoch_checkpoint(self.epochs, closed.next_offset),
        )

    def wake_when_stable(self, wake: Callable[[], None]) -> None:
        log, first = self._partition.log, self._first_unstable()
        if self._unwatch is not None or first >= len(log.segments):
            return
        boundary = log.segments[first].base_offset

        def committed(_: int) -> None:
            if log.last_stable_offset >= boundary:
                self.close()
                wake()

        self._unwatch = self._partition.on_commit(committed)

    def close(self) -> None:
        """Nothing waits for it any more."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def bytes_from(self, offset: int) -> int:
        total = 0
        for segment in reversed(self._partition.log.segments):
            if segment.base_offset < offset:
                break
            total += segment.size
        return total

    def only_local_bytes(self, remote: RemoteLog) -> int:
        lineage = Lineage(self.epochs, self.log_end_offset)
        return self.bytes_from(lineage.highest_remote_offset(remote).offset + 1)

    @property
    def limits(self) -> Limits:
        return Limits.of(self.config)

    async def refresh(self) -> None:
        """Nobody but this broker moves anything of a log that it leads."""

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        self._partition.log.remote_moved(highest_offset, remote_end)

    async def start_at(self, offset: int) -> int:
        start = self._partition.delete_records_before(offset)
        await self._logs.make_start_durable(self._partition.log)
        return start

    @property
    def knows_start(self) -> bool:
        return self._partition.log.knows_start

    async def learn_start(self, offset: int) -> None:
        self._partition.log.trimming.learn_start(offset)
        await self._logs.make_start_durable(self._partition.log)

    async def restore_epochs(self, epochs: Sequence[EpochStart]) -> None:
        self._partition.log.companions.restore(epochs)

    def prepared(self) -> None:
        self._partition.serve()

    async def rebuild(
        self,
        next_offset: int,
        log_start_offset: int,
        epochs: Sequence[EpochStart],
        producers: Sequence[ProducerEntry],
    ) -> None:
        partition = self._partition
        partition.truncate_fully_and_start_at(next_offset, log_start_offset)
        await self._logs.make_start_durable(partition.log)
        restore(partition.log, epochs, producers)
        partition.log.companions.assign_epoch(partition.leader_epoch)
