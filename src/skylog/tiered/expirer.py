"""The expiry lane of a partition: moves the log start, then deletes what is below it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skylog.kernel.logging import get_logger
from skylog.tiered.copying import Stage, deleting
from skylog.tiered.counts import PartitionSizes
from skylog.tiered.retention import Expiry, expired

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.hosted import Hosted
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.sagas import SagaRunner
    from skylog.tiered.slots import Slots

_log = get_logger("tiered.expire")


class Expirer:
    """Does the work of all expiry lanes."""

    def __init__(
        self, runner: SagaRunner, system: System, slots: Slots, counts: TieredCounts
    ) -> None:
        self._runner = runner
        self._clock = system.clock
        self._slots = slots
        self._counts = counts

    def has_work(self, hosted: Hosted, remote: RemoteLog) -> bool:
        # An unprepared leader may not know what is its own; the copy lane prepares it.
        return hosted.is_prepared and bool(self._expired(hosted, remote).segments)

    def due_ms(self, hosted: Hosted, remote: RemoteLog) -> int | None:
        return self._expired(hosted, remote).due_ms if hosted.is_prepared else None

    async def run(self, hosted: Hosted, remote: RemoteLog) -> int | None:
        """Delete what is to go now; returns when age makes the next segment go."""
        with self._counts.expire.run():
            async with self._slots:
                return await self._run(hosted, remote)

    async def _run(self, hosted: Hosted, remote: RemoteLog) -> int | None:
        await hosted.source.refresh()
        expiry = self._expired(hosted, remote)
        if not expiry.segments:
            return expiry.due_ms
        if expiry.log_start_offset > hosted.log_start_offset:
            await hosted.source.start_at(expiry.log_start_offset)
        left = len(expiry.segments)
        for segment in expiry.segments:
            saga = await self._runner.run(deleting(segment), hosted, sleep=self._pause)
            if saga.stage is Stage.STOPPED:
                return None
            hosted.give_up(segment.id)
            left -= 1
            self._note(hosted, remote, left, expiry)
        _log.info(
            "remote segments expired",
            topic=hosted.topic,
            partition=hosted.partition.partition_index,
            count=len(expiry.segments),
            log_start_offset=hosted.log_start_offset,
        )
        return expiry.due_ms

    async def _pause(self, seconds: float) -> None:
        await self._slots.let_go(asyncio.sleep(seconds))

    def _expired(self, hosted: Hosted, remote: RemoteLog) -> Expiry:
        local = hosted.local_part(remote)
        expiry = expired(remote, hosted.lineage, local, hosted.source.limits, self._clock.now_ms())
        self._note(hosted, remote, len(expiry.segments), expiry)
        return expiry

    def _note(self, hosted: Hosted, remote: RemoteLog, left: int, expiry: Expiry) -> None:
        topic, index = hosted.topic, hosted.partition.partition_index
        sizes = self._counts.partitions.get((topic, index), PartitionSizes())
        source, config = hosted.source, hosted.source.config
        only_local = hosted.local_part(remote).only_local_bytes
        on_disk = source.bytes_from(source.local_log_start_offset)
        self._counts.looked_at(
            topic,
            index,
            sizes._replace(
                segments=len(remote),
                size_bytes=remote.finished_bytes,
                retention_percent=_percent(
                    remote.finished_bytes + only_local, config.retention_bytes
                ),
                local_retention_percent=_percent(on_disk, config.kept_bytes),
                delete_lag_segments=left,
                delete_lag_bytes=sum(segment.size for segment in expiry.segments[-left:])
                if left
                else 0,
            ),
        )


def _percent(used: int, limit: int) -> int:
    return used * 100 // limit if limit > 0 else 0
