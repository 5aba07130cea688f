"""The leader's side of segments that a job assembles: grants them, checks them, finishes them.

``grants.py`` decides, ``leases.py`` keeps the grants; this publishes the records and asks the WAL
and the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    EXTERNAL_CHECKS_AT_ONCE_MAX,
    EXTERNAL_SEGMENTS_OPEN_MAX,
    LOG_CHECKPOINT_BYTES_MAX,
)
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.objects.store import ObjectError
from skylog.tiered.consolidation.checking import NOT_THE_SEGMENT, BatchReader, SegmentCheck
from skylog.tiered.consolidation.grants import Asked, GrantStage, gone
from skylog.tiered.consolidation.leases import (
    Leases,
    Led,
    Place,
    SegmentGrant,
    SegmentGrants,
    refused,
)
from skylog.tiered.consolidation.sampling import Outline, Outlining, StoredBatch
from skylog.tiered.copying import Saga, Stage, copying, epochs_within
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState

if TYPE_CHECKING:
    from skylog.kernel.ids import Uuid
    from skylog.kernel.system import System
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.hosted import Hosted
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.sagas import SagaRunner
    from skylog.tiered.segments import TopicIdPartition
    from skylog.tiered.storage import ObjectRemoteStorage

_log = get_logger("tiered.external")


class BatchPage(NamedTuple):
    batches: Sequence[StoredBatch]
    next_offset: int


class BatchSource(BatchReader, Protocol):
    async def located(self, partition: TopicIdPartition, start: int, end: int) -> BatchPage:
        """The batches from ``start`` on, up to ``end`` (exclusive); ``KafkaError``, such as
        OFFSET_OUT_OF_RANGE above the high watermark."""
        ...


@dataclass(frozen=True, slots=True)
class Started:
    """The answer to a job that asks for segments, or only where the next one begins."""

    leader_epoch: int
    next_offset: int
    high_watermark: int
    producer_snapshot: bytes | None
    grants: Sequence[SegmentGrant]


class _Author:
    """Writes in the name of one grant: not in a newer epoch, nor after it was given up."""

    __slots__ = ("_grant", "_grants", "_hosted")

    def __init__(self, hosted: Hosted, grants: SegmentGrants, grant: SegmentGrant) -> None:
        self._hosted = hosted
        self._grants = grants
        self._grant = grant

    @property
    def leads(self) -> bool:
        is_granted = self._grants.get(self._grant.segment.id) is self._grant
        return is_granted and self._hosted.leader_epoch == self._grants.leader_epoch

    @property
    def leader_epoch(self) -> int:
        return self._grants.leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self._hosted.log_start_offset


class ExternalAssembly:
    """All methods run on the event loop."""

    def __init__(
        self,
        led: Led,
        logs: RemoteLogs,
        runner: SagaRunner,
        storage: ObjectRemoteStorage,
        batches: BatchSource,
        system: System,
        counts: TieredCounts,
    ) -> None:
        self._leases = Leases(led, logs, system.clock)
        self._runner = runner
        self._storage = storage
        self._batches = batches
        self._system = system
        self._counts = counts
        self._check = SegmentCheck(storage, batches, system.executor)
        self._checks = asyncio.Semaphore(EXTERNAL_CHECKS_AT_ONCE_MAX)
        # Jobs choose the ids: two partitions may have the same.
        self._tasks: dict[tuple[TopicIdPartition, Uuid], asyncio.Task[None]] = {}

    async def close(self) -> None:
        """What is granted is cleaned by the next leader."""
        await self._leases.close()
        await end_tasks(self._tasks.values())

    # -- asking for segments ---------------------------------------------------------------------

    async def start(
        self,
        partition: TopicIdPartition,
        job: Uuid,
        leader_epoch: int,
        asked: Sequence[Asked],
        *,
        take_over: bool = False,
    ) -> Started:
        """Grant a run of segments; they are told to the metadata topic when this returns. None:
        only ask where the next one begins. ``KafkaError`` if one of them may not be had."""
        place = await self._leases.refreshed(partition, leader_epoch if asked else -1)
        if take_over:
            self._leases.give_up(place, place.grants.take_over(job), "another job has taken over")
        granted = place.grants.repeated(job, asked)
        if granted is None:
            self._check_run(place, job, asked)
            is_open = self._leases.open(len(asked))
            if is_open > EXTERNAL_SEGMENTS_OPEN_MAX:
                raise KafkaError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    f"{is_open} segments are being assembled for partitions of this broker",
                )
            granted = await self._grant(place, job, asked)
        for grant in granted:
            await self._done(grant)
        place = self._leases.place(partition, place.grants.leader_epoch)
        for grant in granted:
            place.grants.granted(grant.segment.id, job)
        return Started(
            place.grants.leader_epoch,
            place.grants.next_offset(place.hosted.covered_end),
            place.hosted.source.log_end_offset,
            None if asked else await self._producers(place),
            granted,
        )

    def _check_run(self, place: Place, job: Uuid, asked: Sequence[Asked]) -> None:
        hosted, remote, grants = place
        now = self._system.clock.monotonic()
        grants.check(job, asked, hosted.covered_end, now)
        if any(remote.segment(one.id) is not None for one in asked):
            raise refused("the id of a segment is in use")
        if asked and hosted.is_copying:
            # It was assembled by the leader, before the setting was changed.
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, "the leader is still copying a segment itself"
            )

    async def _grant(self, place: Place, job: Uuid, asked: Sequence[Asked]) -> list[SegmentGrant]:
        hosted = place.hosted
        outlines = [await self._outline(hosted.partition, one) for one in asked]
        # Others were served while the WAL was asked.
        place = self._leases.place(hosted.partition, place.grants.leader_epoch)
        self._check_run(place, job, asked)
        now = self._system.clock.monotonic()
        granted = []
        for one, outline in zip(asked, outlines, strict=True):
            segment = self._segment(hosted, one, outline)
            granted.append(place.grants.grant(job, one, segment, outline.samples, now))
        for grant in granted:
            self._run(grant, self._begin(place, grant))
        self._leases.watch()
        return granted

    async def _outline(self, partition: TopicIdPartition, asked: Asked) -> Outline:
        """What the WAL has of a segment."""
        outlining, end = Outlining(asked, self._system.rng), asked.end_offset + 1
        while outlining.next_offset < end:
            page = await self._batches.located(partition, outlining.next_offset, end)
            if not page.batches:
                raise refused(f"the WAL has no batch with offset {outlining.next_offset}")
            outlining.add(page.batches)
        return outlining.finish()

    def _segment(self, hosted: Hosted, asked: Asked, outline: Outline) -> RemoteSegment:
        end = asked.end_offset + 1
        return RemoteSegment(
            topic=hosted.topic,
            partition=hosted.partition,
            id=asked.id,
            start_offset=outline.start_offset,
            end_offset=asked.end_offset,
            broker_id=self._runner.node_id,
            max_timestamp_ms=outline.max_timestamp,
            event_timestamp_ms=self._system.clock.now_ms(),
            epochs=epochs_within(hosted.source.epochs, outline.start_offset, end),
            size=outline.size,
            txn_index_empty=True,
        )

    async def _begin(self, place: Place, grant: SegmentGrant) -> None:
        """Publish COPY_STARTED, however long that takes."""
        author = _Author(place.hosted, place.grants, grant)
        saga = await self._runner.begin(copying(grant.segment), author)
        if saga.stage is Stage.PUT:
            grant.stage = GrantStage.OPEN
        else:
            place.grants.ended(grant.segment.id)

    async def _done(self, grant: SegmentGrant) -> None:
        """Wait for the record of a grant that is being published."""
        task = self._tasks.get((grant.segment.partition, grant.segment.id))
        if task is not None:
            # Shielded: it goes on though the request that waits for it has ended.
            await asyncio.shield(task)

    async def _producers(self, place: Place) -> bytes | None:
        """The producers at the end of what is covered, for the first segment of a job."""
        hosted, remote, grants = place
        end = hosted.covered_end
        epoch = hosted.lineage.epoch_of(end - 1) if end > 0 else None
        before = None if epoch is None else remote.segment_for(epoch, end - 1)
        if before is None or len(grants):
            return None
        try:
            found = await self._storage.fetch_index(before, IndexType.PRODUCER_SNAPSHOT)
        except ObjectError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if len(found) > LOG_CHECKPOINT_BYTES_MAX:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a snapshot that is too large")
        return bytes(found)

    # -- finishing them --------------------------------------------------------------------------

    async def check(
        self, partition: TopicIdPartition, job: Uuid, leader_epoch: int, segment_id: Uuid
    ) -> SegmentGrant | None:
        """Check what was put of a segment; None if it is finished already. ``KafkaError``: with
        INVALID_RECORD it is given up, otherwise it may be tried again."""
        place = self._leases.place(partition, leader_epoch)
        if self._is_finished(place, segment_id):
            return None
        grant = place.grants.granted(segment_id, job)
        if grant.stage is GrantStage.FINISHING:
            return grant
        try:
            async with self._checks:
                epochs = tuple(place.hosted.source.epochs)
                custom = await self._check.run(grant.segment, epochs, grant.samples)
        except KafkaError as error:
            if error.code is NOT_THE_SEGMENT:
                self._leases.give_up(place, place.grants.give_up(segment_id), error.message or "")
            raise
        grant.segment = replace(grant.segment, custom_metadata=custom)
        return grant

    async def finish(
        self, partition: TopicIdPartition, leader_epoch: int, grant: SegmentGrant
    ) -> None:
        """Publish COPY_FINISHED of a segment that was checked."""
        place = await self._leases.refreshed(partition, leader_epoch)
        segment_id = grant.segment.id
        if grant.stage is not GrantStage.FINISHING:
            hosted = place.hosted
            place.grants.finish(grant, hosted.covered_end, hosted.log_start_offset)
            self._run(grant, self._end(place, grant))
        await self._done(grant)
        if not self._is_finished(self._leases.place(partition, leader_epoch), segment_id):
            raise gone(segment_id)

    def give_up(
        self, partition: TopicIdPartition, job: Uuid, leader_epoch: int, segment_id: Uuid
    ) -> None:
        """The job does not go on with a segment, nor with those behind it."""
        place = self._leases.place(partition, leader_epoch)
        grant = place.grants.get(segment_id)
        if grant is not None and grant.job == job:
            self._leases.give_up(place, place.grants.give_up(segment_id), "its job has given it up")

    def next_offset(self, partition: TopicIdPartition) -> int:
        place = self._leases.place(partition, -1)
        return place.grants.next_offset(place.hosted.covered_end)

    @staticmethod
    def _is_finished(place: Place, segment_id: Uuid) -> bool:
        known = place.remote.segment(segment_id)
        return known is not None and known.state is SegmentState.COPY_FINISHED

    async def _end(self, place: Place, grant: SegmentGrant) -> None:
        segment = grant.segment
        author = _Author(place.hosted, place.grants, grant)
        try:
            saga = await self._runner.run(Saga(segment, Stage.FINISH), author)
        finally:
            place.grants.ended(segment.id)
        if saga.stage is Stage.COPIED:
            self._counts.of(segment.topic).copy_bytes += segment.size
        elif saga.stage is Stage.GONE:
            place.hosted.give_up(segment.id)

    def _run(self, grant: SegmentGrant, work: Coroutine[Any, Any, None]) -> None:
        key = (grant.segment.partition, grant.segment.id)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[key] = task

        def ended(done: asyncio.Task[None]) -> None:
            del self._tasks[key]
            if not done.cancelled() and done.exception() is not None:
                _log.error("segment of a job failed", segment=str(key[1]), why=done.exception())

        task.add_done_callback(ended)
