"""The writer of a broker: requests → active file → upload → commits, in the order of closing.

Uploads overlap. The parts of files that belong to one coordinator (``ControlPlane.coordinator_of``)
are committed one after the other, so that a producer's batches get their offsets in the order of
arrival; coordinators do not wait for each other. No request is answered before the commit. If a
part cannot be committed, later batches of the same producer and partition fail too, until the lost
one is sent again: committing them would leave a gap that the producer could never close.

==========  ================================================================================
a file is   next
==========  ================================================================================
open        closed: by size, age, or early (``plan.py``)
closed      uploaded: the store has it · failed: refused, or not in time
uploaded    each part committed: it has its offsets · failed: refused, or not known in time
==========  ================================================================================
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from skylog.diskless.plane import CommitResult, ControlPlane, FileToCommit
from skylog.diskless.writer.file import (
    AppendResult,
    ClosedFile,
    FilePart,
    Item,
    Request,
    WalFile,
)
from skylog.diskless.writer.lost import LostBatches
from skylog.diskless.writer.plan import ClosingPlan, Reason, WriterSettings
from skylog.diskless.writer.room import Room
from skylog.kernel import limits
from skylog.kernel.clock import Clock
from skylog.kernel.errors import RETRIABLE, ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.kernel.stages import Stage
from skylog.kernel.waiting import end_tasks
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError, ObjectStore, Outcome
from skylog.wire.buffers import Buffer

__all__ = ["AppendResult", "DisklessWriter", "Item", "Request"]

_log = get_logger("diskless.writer")
_RETRY_SECONDS: Final = 0.05
_RETRY_SECONDS_MAX: Final = 2.0
# A new coordinator is available within moments, and its producers wait for it.
_COMMIT_RETRY_SECONDS_MAX: Final = 0.25
_UNKNOWN: Final = AppendResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_AT_THE_END: Final = AppendResult(
    ErrorCode.REQUEST_TIMED_OUT, message="the broker stopped before the outcome was known"
)
_AFTER_LOST: Final = AppendResult(
    ErrorCode.KAFKA_STORAGE_ERROR, message="An earlier batch of the producer failed."
)
CachePut = Callable[[ObjectKey, Sequence[Buffer], int], None]


@dataclass(slots=True)
class WriterStats:
    """Totals for /metrics."""

    files: int = 0
    bytes: int = 0
    batches: int = 0
    commits: int = 0
    failed_files: int = 0


class WriterStages(NamedTuple):
    """``rotate``: a file from its first request to its closing. ``commit``: one part."""

    rotate: Stage
    upload: Stage
    commit: Stage


class DisklessWriter:
    """All calls come from the event loop."""

    def __init__(
        self,
        settings: WriterSettings,
        store: ObjectStore,
        plane: ControlPlane,
        *,
        clock: Clock,
        rng: Random,
        cache_put: CachePut | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._plane = plane
        self._clock = clock
        self._rng = rng
        self._cache_put = cache_put
        self._plan = ClosingPlan(settings, clock.monotonic() * 1000)
        self.stats = WriterStats()
        self.stages = WriterStages(Stage(clock), Stage(clock), Stage(clock))
        self._active: WalFile | None = None
        self._look: asyncio.TimerHandle | asyncio.Handle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.upload_concurrency)
        # Parts of closed files; a coordinator with any has a task that commits them.
        self._queues: dict[int, deque[FilePart]] = {}
        self._lost = LostBatches()
        self._room = Room(settings.inflight_bytes_max)
        # The number of requests that wait for a response.
        self._requests = 0
        self._ended = False

    async def append(self, request_id: int, items: Sequence[Item]) -> list[AppendResult]:
        """Write a request's batches; returns the outcome of each, once known."""
        request = self.submit(request_id, items)
        await asyncio.shield(request.done)
        return request.results()

    def submit(self, request_id: int, items: Sequence[Item]) -> Request:
        """Like ``append``, without waiting: the order of calls is the order of batches."""
        coordinator_of = self._plane.coordinator_of
        coordinator_ids = [coordinator_of((item.topic_id, item.partition)) for item in items]
        request = Request(request_id, items, coordinator_ids)
        if self._ended:
            for at in range(len(items)):
                request.settle(at, AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return request
        for at, coordinator_id in enumerate(request.coordinator_ids):
            if coordinator_id is None:
                self._lost.add(items[at])
                request.settle(at, _UNKNOWN)
        if request.done.done():
            return request
        request.done.add_done_callback(lambda _: self._give_back(request))
        self._requests += 1
        if self._room.take(request):
            self._write(request)
        return request

    def _give_back(self, request: Request) -> None:
        self._requests -= 1
        self._room.give_back(request)
        for waiting in self._room.admit():
            self._write(waiting)

    def waiting(self) -> dict[int, int]:
        """The number of files waiting for their commit, by coordinator."""
        return {coordinator_id: len(parts) for coordinator_id, parts in self._queues.items()}

    async def close(self) -> None:
        """Write what is queued, and accept no more. If coordinators have already stopped, callers
        get an unknown outcome, and the object is left to the orphan scan."""
        self._ended = True
        end = self._clock.monotonic() + limits.DISKLESS_CLOSE_SECONDS_MAX
        while self._active is not None or self._tasks or self._room.is_waited_for:
            self._close(Reason.END)
            left = end - self._clock.monotonic()
            if left <= 0 and not await self._abandon():
                return
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=max(left, 0))
            await asyncio.sleep(0)

    async def _abandon(self) -> bool:
        """False: some work does not end even when cancelled."""
        waiting = [part for parts in self._queues.values() for part in parts]
        self._queues.clear()
        for part in waiting:
            _log.error("file not committed before shutdown", **part.names())
            part.fail(_AT_THE_END)
        await end_tasks(self._tasks)
        return not self._tasks

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- closing -------------------------------------------------------------------------------

    def _write(self, request: Request) -> None:
        """Add to the active file, which may then be full."""
        if self._active is None:
            self._active = WalFile(self._ticks_ms(), self.stages.rotate.begin())
        self._active.add(request)
        if self._active.size >= self._settings.buffer_bytes_max:
            self._close(Reason.SIZE)
        elif self._plan.is_complete(self._requests) or self._look is None:
            # Other requests of this event-loop iteration go into the same file.
            self._reconsider()

    def _ticks_ms(self) -> float:
        """Monotonic time: a file must not wait because a clock was set back."""
        return self._clock.monotonic() * 1000

    def _consider(self) -> None:
        """Close the active file, or schedule the next check."""
        self._look = None
        active = self._active
        if active is None:
            return
        now_ms, under_way = self._ticks_ms(), self._under_way(active)
        reason = self._plan.reason_to_close(
            active.size, active.opened_ms, under_way, self._requests, now_ms
        )
        if reason is not None:
            self._close(reason)
            return
        wait_ms = self._plan.look_again_ms(active.opened_ms, under_way, now_ms)
        self._look = asyncio.get_running_loop().call_later(wait_ms / 1000, self._consider)

    def _under_way(self, active: WalFile) -> int:
        """Files before this one at the coordinator with the fewest: it waits for no other."""
        return min(len(self._queues.get(one, ())) for one in active.coordinator_ids)

    def _close(self, reason: Reason) -> None:
        active, self._active = self._active, None
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if active is None:
            return
        closed_ms = self._ticks_ms()
        key = ObjectKey.new("wal", self._clock.now_ms(), self._rng)
        parts = active.close(key, self._rng, closed_ms)
        file = parts[0].file
        self._plan.closed(self._requests, closed_ms)
        self.stages.rotate.succeeded(active.began)
        _log.debug("file closed", key=str(key), size=file.size, reason=reason.value)
        self._send(file)
        for part in parts:
            if part.coordinator_id in self._queues:
                self._queues[part.coordinator_id].append(part)
            else:
                self._queues[part.coordinator_id] = deque([part])
                self._start(self._commit_all(part.coordinator_id))

    def _reconsider(self) -> None:
        """Something has changed: a waiting file may now be closed early."""
        if self._active is not None:
            if self._look is not None:
                self._look.cancel()
            self._look = asyncio.get_running_loop().call_soon(self._consider)

    # -- uploading -----------------------------------------------------------------------------

    def _send(self, file: ClosedFile) -> None:
        """Upload: synchronously, if that is faster than waiting for it."""
        buffers, began = file.take_buffers(), self.stages.upload.begin()
        try:
            if not ((near := self._store.at_hand) and near.put_now(file.key, buffers)):
                self._start(self._upload(file, buffers))
                return
            self._sent(file, buffers)
        except Exception as error:  # noqa: BLE001 - a bug costs its file, not the writer
            self.stages.upload.failed(began)
            file.not_uploaded(error)
        else:
            self.stages.upload.succeeded(began)

    async def _upload(self, file: ClosedFile, buffers: Sequence[Buffer]) -> None:
        try:
            with self.stages.upload.run():
                async with self._slots:
                    await self._put(file.key, buffers)
            self._sent(file, buffers)
        except Exception as error:  # noqa: BLE001 - reported by the commit
            file.not_uploaded(error)

    def _sent(self, file: ClosedFile, buffers: Sequence[Buffer]) -> None:
        if self._cache_put is not None:
            self._cache_put(file.key, buffers, file.size)
        file.uploaded.set_result(None)

    async def _put(self, key: ObjectKey, buffers: Sequence[Buffer]) -> None:
        """Put the object, under the same key until it is known to exist."""
        delay = _RETRY_SECONDS
        while True:
            try:
                await self._store.put(key, buffers)
                return
            except ObjectError as error:
                if error.kind is Outcome.REFUSED or not self._in_time(key):
                    raise
                _log.warning("upload failed, retrying", key=str(key), why=str(error))
            await asyncio.sleep(delay * (0.5 + self._rng.random()))
            delay = min(delay * 2, _RETRY_SECONDS_MAX)

    def _in_time(self, key: ObjectKey) -> bool:
        """Whether the plane would still accept a commit of this key."""
        age_ms = self._clock.now_ms() - (key.created_ms or 0)
        return age_ms < self._settings.commit_age_max_ms / 2

    # -- committing ----------------------------------------------------------------------------

    async def _commit_all(self, coordinator_id: int) -> None:
        parts = self._queues[coordinator_id]
        while parts:
            await self._commit(parts[0])
            self._settled(parts.popleft().file)
            self._reconsider()
        del self._queues[coordinator_id]

    async def _commit(self, part: FilePart) -> None:
        file = part.file
        try:
            await asyncio.shield(file.uploaded)
            to_commit, pieces = part.to_commit(self._settings.broker_id, self._lost)
            with self.stages.commit.run():
                results = await self._commit_until_known(to_commit, part)
        except (KafkaError, ObjectError) as error:
            self._give_up(part, error)
            return
        except Exception as error:  # noqa: BLE001 - a bug costs its file, not the writer
            _log.exception("commit failed", key=str(file.key))
            self._give_up(part, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
            return
        file.keep_object = True
        for piece, result in zip(pieces, results, strict=True):
            if result.error in RETRIABLE:
                self._lost.add(piece.item)
            piece.request.settle(piece.at, _appended(result))
        self.stats.commits += 1
        self.stats.batches += len(to_commit.batches)
        if len(pieces) < len(part.pieces):
            part.fail(_AFTER_LOST)

    async def _commit_until_known(
        self, to_commit: FileToCommit, part: FilePart
    ) -> list[CommitResult]:
        """If the outcome is unknown, repeat the request with the same key."""
        unknown, tell, delay = False, _log.warning, _RETRY_SECONDS
        while True:
            try:
                return await self._plane.commit_part(to_commit, part.coordinator_id)
            except KafkaError as error:
                unknown = unknown or error.ambiguous
                if not error.retriable:
                    raise
                if not self._in_time(part.file.key):
                    # A definite failure of this attempt says nothing about an earlier one.
                    raise KafkaError(error.code, error.message, ambiguous=unknown) from error
                tell("commit outcome unknown, retrying", **part.names(), why=str(error))
                tell = _log.debug
            await asyncio.sleep(delay * (0.5 + self._rng.random()))
            delay = min(delay * 2, _COMMIT_RETRY_SECONDS_MAX)

    def _give_up(self, part: FilePart, error: KafkaError | ObjectError) -> None:
        """Report the failure of the part to all its requests."""
        _log.error("file failed", **part.names(), why=str(error))
        part.file.failed = True
        part.lose(self._lost)
        unknown = isinstance(error, KafkaError) and error.ambiguous
        # An object that may not exist is left to the orphan scan.
        part.file.keep_object |= unknown or isinstance(error, ObjectError)
        code = ErrorCode.REQUEST_TIMED_OUT if unknown else ErrorCode.KAFKA_STORAGE_ERROR
        part.fail(AppendResult(code, message=str(error)))

    def _settled(self, file: ClosedFile) -> None:
        """A part of the file has been committed or abandoned; after the last one, count the
        file."""
        file.unsettled -= 1
        if file.unsettled:
            return
        now_ms = self._ticks_ms()
        self._plan.committed(now_ms - file.closed_ms, now_ms)
        if file.failed:
            self.stats.failed_files += 1
        else:
            self.stats.files += 1
            self.stats.bytes += file.size
        if not file.keep_object:
            self._start(self._remove_unknown(file.key))

    async def _remove_unknown(self, key: ObjectKey) -> None:
        """Every part was refused: remove the object, which is certainly not needed."""
        try:
            described = await self._plane.describe_files([str(key)])
            if described[0].error is ErrorCode.RESOURCE_NOT_FOUND:
                await self._store.delete_many([key])
        except (KafkaError, ObjectError) as error:
            # The orphan scan will find it.
            _log.warning("refused file not removed", key=str(key), why=str(error))


def _appended(result: CommitResult) -> AppendResult:
    return AppendResult(
        result.error,
        result.assigned_base_offset,
        result.log_append_time,
        result.log_start_offset,
        result.message,
    )
