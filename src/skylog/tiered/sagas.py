"""Does what ``copying.py`` decides for one segment: publishes, puts, deletes, and tries again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skylog.kernel.errors import KafkaError, StorageError
from skylog.kernel.logging import get_logger
from skylog.objects.store import ObjectError
from skylog.objects.store import Outcome as StoreOutcome
from skylog.tiered.copying import Effect, Outcome, Saga, Stage, applied, next_effect, record_of
from skylog.tiered.ports import Published
from skylog.tiered.segments import SegmentState
from skylog.tiered.storage import CustomMetadataTooLarge

if TYPE_CHECKING:
    from skylog.kernel.rng import Random
    from skylog.kernel.system import System
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.ports import RemoteLogs, RemoteStorage, SegmentFiles

_log = get_logger("tiered.copy")
Sleep = Callable[[float], Awaitable[object]]
# What a store, a disk or the metadata topic may say; anything else is a fault of ours.
FAILURES = (ObjectError, KafkaError, StorageError, OSError, TimeoutError)


class Author(Protocol):
    """In whose name records are written."""

    @property
    def leads(self) -> bool: ...

    @property
    def leader_epoch(self) -> int:
        """At this moment; −1 for what needs no leader."""
        ...

    @property
    def log_start_offset(self) -> int:
        """At this moment; −1 if the records shall not carry it."""
        ...


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Kafka's ``remote.log.manager.task.retry.*``."""

    backoff_ms: int = 500
    backoff_ms_max: int = 30_000
    jitter: float = 0.2


class Backoff:
    """Growing pauses after failures in a row."""

    __slots__ = ("_failures", "_rng", "_settings")

    def __init__(self, settings: RetrySettings, rng: Random) -> None:
        self._settings = settings
        self._rng = rng
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def next_seconds(self) -> float:
        settings = self._settings
        pause_ms = min(settings.backoff_ms << self._failures, settings.backoff_ms_max)
        self._failures = min(self._failures + 1, 30)
        jitter = 1 + settings.jitter * (2 * self._rng.random() - 1)
        return pause_ms * jitter / 1000


class SagaRunner:
    """Runs sagas to their end, however long the store or the metadata topic is away."""

    def __init__(
        self,
        node_id: int,
        logs: RemoteLogs,
        storage: RemoteStorage,
        system: System,
        retry: RetrySettings,
        counts: TieredCounts,
    ) -> None:
        self.node_id = node_id
        self._logs = logs
        self._storage = storage
        self._system = system
        self._retry = retry
        self._counts = counts
        # Segments whose COPY_FINISHED was sent, and may come late.
        self._finishing: set[bytes] = set()

    def may_finish(self, segment_id: bytes) -> bool:
        """Whether a copy that broke off may yet be finished by a record that is on its way: it
        must not be cleaned in the epoch of that record."""
        return segment_id in self._finishing

    def backoff(self) -> Backoff:
        return Backoff(self._retry, self._system.rng)

    async def run(
        self,
        saga: Saga,
        author: Author,
        files: SegmentFiles | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> Saga:
        """The saga when it has ended. ``files`` is what a copy takes; ``sleep`` pauses before
        another attempt."""
        backoff, epoch = self.backoff(), author.leader_epoch
        while not saga.has_ended:
            if not author.leads:
                return applied(saga, Outcome.DEPOSED)
            if saga.stage is Stage.START and author.leader_epoch != epoch:
                # Another leader may have cleaned what was begun meanwhile. Nothing was put yet, and
                # an id is never used again.
                saga = applied(saga, Outcome.FORGOTTEN)
                break
            before = saga.stage
            saga = await self._step(saga, author, files)
            if saga.stage is before:
                await sleep(backoff.next_seconds())
            else:
                backoff.reset()
        self._finishing.discard(saga.segment.id)
        return saga

    async def begin(self, saga: Saga, author: Author, sleep: Sleep = asyncio.sleep) -> Saga:
        """Publish COPY_STARTED of a segment whose objects others put: the saga, in the stage PUT
        or stopped."""
        backoff = self.backoff()
        while saga.stage is Stage.START:
            if not author.leads:
                return applied(saga, Outcome.DEPOSED)
            saga = applied(saga, await self._publish(saga, author))
            if saga.stage is Stage.START:
                await sleep(backoff.next_seconds())
        return saga

    async def _step(self, saga: Saga, author: Author, files: SegmentFiles | None) -> Saga:
        effect = next_effect(saga)
        if effect is Effect.PUBLISH:
            return applied(saga, await self._publish(saga, author))
        if effect is Effect.DELETE:
            return applied(saga, await self._delete(saga))
        if files is None:
            raise ValueError("a segment without files cannot be put")
        return await self._put(saga, files)

    async def _publish(self, saga: Saga, author: Author) -> Outcome:
        segment = saga.segment
        now_ms = self._system.clock.now_ms()
        epoch, start = author.leader_epoch, author.log_start_offset
        record = record_of(saga, self.node_id, now_ms, epoch, start)
        if saga.stage is Stage.FINISH:
            self._finishing.add(segment.id)
        try:
            published = await self._logs.publish(segment.partition, record)
        except FAILURES as error:
            self._tell("record not published", saga, error)
            return Outcome.UNKNOWN
        if published is Published.EFFECTIVE:
            return Outcome.DONE
        self._counts.void_records += 1
        remote = self._logs.get(segment.partition)
        if remote is None or saga.stage is Stage.START:
            return Outcome.VOID
        known = remote.segment(segment.id)
        if known is None:
            return Outcome.FORGOTTEN
        # The first record took effect and its answer was lost; only its repetition is void.
        # Others rely on the segment by now: it must not be discarded.
        is_finished = saga.stage is Stage.FINISH and known.state is SegmentState.COPY_FINISHED
        return Outcome.DONE if is_finished else Outcome.VOID

    async def _put(self, saga: Saga, files: SegmentFiles) -> Saga:
        counts = self._counts.of(saga.segment.topic)
        counts.copy_requests += 1
        try:
            custom_metadata = await self._storage.copy(saga.segment, files)
        except CustomMetadataTooLarge as error:
            counts.copy_errors += 1
            self._tell("segment not copied", saga, error)
            return applied(saga, Outcome.TOO_LARGE)
        except FAILURES as error:
            counts.copy_errors += 1
            self._tell("segment not copied", saga, error)
            is_unclear = isinstance(error, ObjectError) and error.kind is StoreOutcome.AMBIGUOUS
            return applied(saga, Outcome.UNKNOWN if is_unclear else Outcome.FAILED)
        return applied(saga, Outcome.DONE, custom_metadata)

    async def _delete(self, saga: Saga) -> Outcome:
        counts = self._counts.of(saga.segment.topic)
        counts.delete_requests += 1
        try:
            await self._storage.delete(saga.segment)
        except FAILURES as error:
            counts.delete_errors += 1
            self._tell("segment not deleted", saga, error)
            return Outcome.FAILED
        return Outcome.DONE

    @staticmethod
    def _tell(what: str, saga: Saga, error: Exception) -> None:
        segment = saga.segment
        _log.warning(
            what,
            topic=segment.topic,
            partition=segment.partition.partition_index,
            segment=str(segment.id),
            start_offset=segment.start_offset,
            stage=saga.stage.value,
            why=str(error) or type(error).__name__,
        )
