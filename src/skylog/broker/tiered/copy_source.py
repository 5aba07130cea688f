"""A classic replica as the source of remote segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skylog.log.closed import ClosedSegment
    from skylog.log.epochs import LeaderEpochs
    from skylog.log.manager import LogManager
    from skylog.replication.partition import Partition


class ReplicaSource:
    """Fills ``tiered.ports.CopySource``."""

    __slots__ = ("_logs", "_partition")

    def __init__(self, partition: Partition, logs: LogManager) -> None:
        self._partition = partition
        self._logs = logs

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
    def last_stable_offset(self) -> int:
        return self._partition.log.last_stable_offset

    @property
    def epochs(self) -> LeaderEpochs:
        return self._partition.log.companions.epochs

    def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        return self._partition.log.closed_segments(from_offset)

    async def prepare(self, segment: ClosedSegment) -> None:
        await self._logs.require_snapshot(self._partition.log, segment.next_offset)

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        self._partition.log.remote_moved(highest_offset, remote_end)

    async def start_at(self, offset: int) -> int:
        start = self._partition.delete_records_before(offset)
        await self._logs.make_start_durable(self._partition.log)
        return start
