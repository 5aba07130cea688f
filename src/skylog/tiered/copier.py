"""The copy lane of a partition: prepares its leader, cleans up after older ones, copies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import random_uuid
from skylog.tiered.candidates import abandoned, uncopied
from skylog.tiered.copying import (
    Saga,
    Stage,
    claiming,
    copying,
    deleting,
    empty_run,
    new_segment,
)
from skylog.tiered.counts import PartitionSizes
from skylog.tiered.leading import Preparation, needs_preparation, start_is_behind
from skylog.tiered.sagas import Backoff

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.log.closed import ClosedSegment
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.hosted import Hosted
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import RemoteLogs, SegmentFiles
    from skylog.tiered.quota import ByteQuota
    from skylog.tiered.sagas import SagaRunner
    from skylog.tiered.segments import RemoteSegment
    from skylog.tiered.slots import Slots

_log = get_logger("tiered.copy")
# The quota is asked again at least this often: it may have been raised.
QUOTA_SECONDS_MAX: Final = 1.0


class Copier:
    """Does the work of all copy lanes."""

    def __init__(
        self,
        logs: RemoteLogs,
        runner: SagaRunner,
        preparation: Preparation,
        system: System,
        quota: ByteQuota,
        slots: Slots,
        counts: TieredCounts,
    ) -> None:
        self._logs = logs
        self._runner = runner
        self._preparation = preparation
        self._system = system
        self._quota = quota
        self._slots = slots
        self._counts = counts

    def has_work(self, hosted: Hosted, remote: RemoteLog) -> bool:
        if start_is_behind(hosted, remote):
            return True
        if not hosted.is_prepared:
            if needs_preparation(hosted, remote):
                return True
            hosted.prepared()
        if hosted.has_returned or abandoned(remote, hosted.leader_epoch, hosted.failed):
            return True
        return self._may_copy(hosted) and hosted.source.closed_end > hosted.covered_end

    def due_ms(self, hosted: Hosted, remote: RemoteLog) -> int | None:
        """Only a roll, a commit or a record makes more work."""
        return None

    async def run(self, hosted: Hosted, remote: RemoteLog) -> int | None:
        """Work until there is nothing more to do now; returns when there will be, if that is
        known."""
        backoff = self._runner.backoff()
        # The metadata topic may be read again from its beginning, into another remote log.
        while hosted.leads and self._logs.get(hosted.partition) is remote:
            if not hosted.is_prepared or start_is_behind(hosted, remote):
                await self._preparation.run(hosted, remote)
                hosted.follow(remote)
                if not hosted.is_prepared:
                    break
            if hosted.has_returned:
                hosted.take_back()
            left = abandoned(remote, hosted.leader_epoch, hosted.failed)
            is_claimed = remote.fence >= hosted.leader_epoch
            if left and is_claimed:
                await self._clean(hosted, left[0])
                continue
            closed, due_ms = await self._next_closed(hosted, remote)
            now_ms = self._system.clock.now_ms()
            is_due = closed is not None and due_ms is not None and due_ms <= now_ms
            if closed is not None and is_due and self._may_copy(hosted):
                hosted.is_copying = True
                try:
                    await self._copy(hosted, closed, backoff)
                finally:
                    hosted.is_copying = False
            elif left:
                await self._claim(hosted)
            else:
                return due_ms
        return None

    # -- one segment ---------------------------------------------------------------------------

    @staticmethod
    def _may_copy(hosted: Hosted) -> bool:
        config = hosted.source.config
        return config.copies and not hosted.is_refused and not hosted.is_granted

    async def _next_closed(
        self, hosted: Hosted, remote: RemoteLog
    ) -> tuple[ClosedSegment | None, int | None]:
        """The oldest segment that is not remote, and when it is to be copied."""
        source = hosted.source
        if not self._may_copy(hosted) or source.closed_end <= hosted.covered_end:
            self._note(hosted, remote, [])
            return None, None
        closed = await source.closed_segments(hosted.covered_end)
        found = uncopied(closed, remote, hosted.lineage, source.log_start_offset)
        self._note(hosted, remote, found)
        if not found:
            return None, None
        behind = source.bytes_from(found[0].next_offset)
        now_ms = self._system.clock.now_ms()
        return found[0], hosted.copy_lag.due_ms(found[0], behind, now_ms)

    async def _copy(self, hosted: Hosted, closed: ClosedSegment, backoff: Backoff) -> None:
        await self._wait_for_quota(closed.size)
        async with self._slots:
            segment = new_segment(
                hosted.partition,
                hosted.topic,
                random_uuid(self._system.rng),
                closed,
                hosted.source.epochs,
                self._runner.node_id,
                self._system.clock.now_ms(),
            )
            if not segment.epochs:
                what = f"no leader epoch is known for offset {closed.base_offset}"
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, what)
            files = await hosted.source.files_of(closed)
            began = self._counts.copy.begin()
            self._counts.copies_running += 1
            try:
                saga = await self._run(hosted, copying(segment), files)
            finally:
                self._counts.copies_running -= 1
        if saga.stage is Stage.COPIED:
            self._counts.copy.succeeded(began)
            self._counts.of(hosted.topic).copy_bytes += closed.size
            backoff.reset()
            return
        self._counts.copy.failed(began)
        if saga.stage is Stage.REFUSED:
            self._refuse(hosted)
        elif saga.stage is Stage.GONE:
            await asyncio.sleep(backoff.next_seconds())

    async def _clean(self, hosted: Hosted, segment: RemoteSegment) -> None:
        async with self._slots:
            saga = await self._run(hosted, deleting(segment))
        if saga.stage is Stage.GONE:
            _log.info("unfinished copy cleaned", topic=hosted.topic, segment=str(segment.id))

    async def _claim(self, hosted: Hosted) -> None:
        run = empty_run(
            hosted.partition,
            hosted.topic,
            random_uuid(self._system.rng),
            hosted.leader_epoch,
            hosted.log_start_offset,
            self._runner.node_id,
            self._system.clock.now_ms(),
        )
        async with self._slots:
            await self._run(hosted, claiming(run))

    async def _run(self, hosted: Hosted, saga: Saga, files: SegmentFiles | None = None) -> Saga:
        async def pause(seconds: float) -> None:
            # Others may copy while the store or the metadata topic refuses this one.
            await self._slots.let_go(asyncio.sleep(seconds))

        try:
            ended = await self._runner.run(saga, hosted, files, pause)
        except Exception:
            if not self._runner.may_finish(saga.segment.id):
                hosted.give_up(saga.segment.id)
            raise
        if ended.stage is Stage.GONE:
            hosted.give_up(saga.segment.id)
        return ended

    async def _wait_for_quota(self, size: int) -> None:
        clock = self._system.clock
        began, is_throttled = clock.monotonic(), False
        while throttle_ms := self._quota.throttle_ms(clock.now_ms()):
            is_throttled = True
            await asyncio.sleep(min(throttle_ms / 1000, QUOTA_SECONDS_MAX))
        if is_throttled:
            self._counts.copy_throttle.waited(clock.monotonic() - began)
        self._quota.record(size, clock.now_ms())

    @staticmethod
    def _refuse(hosted: Hosted) -> None:
        hosted.is_refused = True
        _log.error(
            "custom metadata is too large: not copied until this broker starts again",
            topic=hosted.topic,
            partition=hosted.partition.partition_index,
        )

    def _note(self, hosted: Hosted, remote: RemoteLog, found: list[ClosedSegment]) -> None:
        topic, index = hosted.topic, hosted.partition.partition_index
        sizes = self._counts.partitions.get((topic, index), PartitionSizes())
        lag_bytes = sum(segment.size for segment in found)
        self._counts.looked_at(
            topic,
            index,
            sizes._replace(
                copy_lag_bytes=lag_bytes,
                copy_lag_segments=len(found),
                segments=len(remote),
                size_bytes=remote.finished_bytes,
            ),
        )
