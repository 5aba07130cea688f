"""A partition whose records count as committed only once they can survive a power failure.

With two replicas in sync, a record is in the memory of two machines before it is committed. While
only the leader is in sync, the high watermark waits until the record is on disk instead: for every
reader, on this broker or another. Partitions of ``__remote_log_metadata`` are kept so, because a
local segment may be removed as soon as one record says that its copy is complete. Appends during
a sync share the next one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.replication.partition import Partition, PartitionHost

if TYPE_CHECKING:
    from skylog.log.log import Log

_log = get_logger("replication.synced")


class SyncHost(PartitionHost, Protocol):
    """What such a partition needs of its broker."""

    async def sync(self, log: Log) -> None:
        """Make everything appended so far durable; OSError or KafkaError if that fails."""


class SyncedPartition(Partition):
    """See above. All methods run on the event loop."""

    __slots__ = ("_sync_host", "_sync_task", "_synced", "_truncations")

    def __init__(self, host: SyncHost, topic: str, index: int, topic_id: Uuid, log: Log):
        super().__init__(host, topic, index, topic_id, log)
        self._sync_host = host
        self._sync_task: asyncio.Task[None] | None = None
        # What was recovered may be in the page cache only.
        self._synced = 0
        self._truncations = 0

    def _commit(self, high_watermark: int) -> None:
        if self._alone and self._synced < high_watermark:
            self._start_sync()
            high_watermark = self._synced
        super()._commit(high_watermark)

    @property
    def _alone(self) -> bool:
        return len(self.isr) <= 1 if self.leader is None else len(self.leader.maximal_isr) <= 1

    def _start_sync(self) -> None:
        if self._sync_task is None:
            self._sync_task = asyncio.get_running_loop().create_task(self._sync())

    async def _sync(self) -> None:
        end_offset, truncations = self.log.log_end_offset, self._truncations
        try:
            await self._sync_host.sync(self.log)
        except (OSError, KafkaError) as error:
            # The log is offline now; what waits for the commit is never acknowledged.
            _log.error("not synced", partition=str(self), error=str(error))
            return
        finally:
            self._sync_task = None
        if self._truncations == truncations:
            self._synced = end_offset
        if self.is_leader:
            before = self.log.high_watermark
            self._advance_high_watermark()
            if self.leader is None and self.log.high_watermark > before:
                self._notify(0)

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset)
        self._truncations += 1
        self._synced = min(self._synced, offset)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        super().truncate_fully_and_start_at(offset, log_start)
        self._truncations += 1
        self._synced = 0
