"""The writer of a broker: requests → active file → upload → commit, in the order of closing.

Uploads overlap; commits do not, so a producer's batches get their offsets in the order in which
they came. Nobody is answered before the commit. When a file cannot be committed, later batches of
the same producer and partition fail too until the lost one comes again: committing them would
leave a hole that the producer could not close any more.

==========  ================================================================================
a file is   next
==========  ================================================================================
open        closed: by size, age, or early (``plan.py``)
closed      uploaded: the store has it · failed: refused, or not in time
uploaded    committed: the plane has given offsets · failed: refused, or not known in time
==========  ================================================================================
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.diskless.plane import CommitResult, ControlPlane, FileToCommit
from skylog.diskless.writer.file import (
    AppendResult,
    Item,
    Request,
    WalFile,
)
from skylog.diskless.writer.lost import LostBatches
from skylog.diskless.writer.plan import ClosingPlan, Reason, WriterSettings
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError, ObjectStore, Outcome
from skylog.wire.buffers import Buffer

__all__ = ["AppendResult", "DisklessWriter", "Item"]

_log = get_logger("diskless.writer")
_RETRY_SECONDS: Final = 0.05
_RETRY_SECONDS_MAX: Final = 2.0
CachePut = Callable[[ObjectKey, Sequence[Buffer], int], None]


@dataclass(slots=True)
class WriterStats:
    """Totals for /metrics."""

    files: int = 0
    bytes: int = 0
    batches: int = 0
    failed_files: int = 0
    upload_seconds: float = 0.0
    commit_seconds: float = 0.0
    last_commit_ms: int = 0


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
        self._plan = ClosingPlan(settings, clock.now_ms())
        self.stats = WriterStats(last_commit_ms=clock.now_ms())
        self._active: WalFile | None = None
        self._look: asyncio.TimerHandle | asyncio.Handle | None = None
        self._uploading: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.upload_concurrency)
        self._closed: deque[WalFile] = deque()
        self._committer: asyncio.Task[None] | None = None
        self._lost = LostBatches()
        self._inflight = 0
        self._room = asyncio.Event()
        self._room.set()
        self._ended = False

    async def append(self, request_id: int, items: Sequence[Item]) -> list[AppendResult]:
        """Write a request's batches; returns what became of each, once that is known."""
        size = sum(item.batch.size for item in items)
        while self._inflight and self._inflight + size > self._settings.inflight_bytes_max:
            self._room.clear()
            await self._room.wait()
        return await self.submit(request_id, items)

    @property
    def has_room(self) -> bool:
        """Whether a request may be submitted without waiting for others."""
        return self._inflight < self._settings.inflight_bytes_max

    def submit(self, request_id: int, items: Sequence[Item]) -> asyncio.Future[list[AppendResult]]:
        """As ``append``, without waiting for room: the order of calls is the order of batches."""
        loop = asyncio.get_running_loop()
        size = sum(item.batch.size for item in items)
        request = Request(request_id, items, size, loop.create_future())
        if self._ended:
            for at in range(len(items)):
                request.results[at] = AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            request.settle()
            return request.done
        active = self._active
        if active is not None and self._plan.must_close_before(active.size, size):
            self._close(Reason.SIZE)
        if self._active is None:
            self._active = WalFile(self._clock.now_ms())
        self._active.add(request)
        self._inflight += size
        request.done.add_done_callback(lambda _: self._release(size))
        if self._active.size >= self._settings.buffer_bytes_max:
            self._close(Reason.SIZE)
        elif self._look is None:
            # What else arrives in this turn of the loop shall be in the same file.
            self._look = loop.call_soon(self._consider)
        return request.done

    async def close(self) -> None:
        """Write what is waiting, and take no more."""
        self._ended = True
        if self._active is not None:
            self._close(Reason.END)
        while self._committer is not None or self._uploading:
            tasks = [*self._uploading, *([self._committer] if self._committer else [])]
            await asyncio.wait(tasks)

    # -- closing -------------------------------------------------------------------------------

    def _release(self, size: int) -> None:
        self._inflight -= size
        self._room.set()

    def _consider(self) -> None:
        """Close the active file, or look again when that may be due."""
        self._look = None
        active = self._active
        if active is None:
            return
        now_ms, uploads = self._clock.now_ms(), len(self._closed)
        reason = self._plan.reason_to_close(active.size, active.opened_ms, uploads, now_ms)
        if reason is not None:
            self._close(reason)
            return
        wait_ms = self._plan.look_again_ms(active.opened_ms, uploads, now_ms)
        self._look = asyncio.get_running_loop().call_later(wait_ms / 1000, self._consider)

    def _close(self, reason: Reason) -> None:
        file, self._active = self._active, None
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if file is None:
            return
        now_ms = self._clock.now_ms()
        file.lay_out(ObjectKey.new("wal", now_ms, self._rng))
        file.uploaded = asyncio.get_running_loop().create_future()
        self._plan.closed(now_ms)
        _log.debug("file closed", key=str(file.key), size=file.size, reason=reason.value)
        task = asyncio.ensure_future(self._upload(file))
        self._uploading.add(task)
        task.add_done_callback(self._uploading.discard)
        self._closed.append(file)
        if self._committer is None:
            self._committer = asyncio.ensure_future(self._commit_all())

    def _reconsider(self) -> None:
        """An upload or commit has ended: a waiting file may be closed early now."""
        if self._active is not None:
            if self._look is not None:
                self._look.cancel()
            self._look = asyncio.get_running_loop().call_soon(self._consider)

    # -- uploading -----------------------------------------------------------------------------

    async def _upload(self, file: WalFile) -> None:
        began = self._clock.monotonic()
        uploaded = file.uploaded
        try:
            async with self._slots:
                await self._put(file)
        except Exception as error:  # noqa: BLE001 - the committer tells the producers
            if uploaded is not None:
                uploaded.set_exception(error)
                uploaded.exception()  # it is looked at later, by the committer
        else:
            self.stats.upload_seconds += self._clock.monotonic() - began
            if uploaded is not None:
                uploaded.set_result(None)

    async def _put(self, file: WalFile) -> None:
        """Put the object; the same key again until it is known to be there."""
        layout, key = file.layout, file.key
        if layout is None or key is None:
            raise RuntimeError("a file is laid out before it is uploaded")
        delay = _RETRY_SECONDS
        while True:
            try:
                await self._store.put(key, layout.parts)
                break
            except ObjectError as error:
                if error.kind is Outcome.REFUSED or not self._in_time(key):
                    raise
                _log.warning("upload failed, tried again", key=str(key), why=str(error))
            await asyncio.sleep(delay * (0.5 + self._rng.random()))
            delay = min(delay * 2, _RETRY_SECONDS_MAX)
        if self._cache_put is not None:
            self._cache_put(key, layout.parts, layout.size)

    def _in_time(self, key: ObjectKey) -> bool:
        """Whether the plane would still take a commit of this key."""
        age_ms = self._clock.now_ms() - (key.created_ms or 0)
        return age_ms < self._settings.commit_age_max_ms / 2

    # -- committing ----------------------------------------------------------------------------

    async def _commit_all(self) -> None:
        try:
            while self._closed:
                file = self._closed[0]
                await self._commit(file)
                self._closed.popleft()
                self._reconsider()
        finally:
            self._committer = None

    async def _commit(self, file: WalFile) -> None:
        began = self._clock.monotonic()
        try:
            if file.uploaded is not None:
                await file.uploaded
            to_commit, pieces = file.to_commit(self._settings.broker_id, self._lost)
            results = await self._commit_until_known(to_commit, file)
        except (KafkaError, ObjectError) as error:
            await self._give_up(file, error)
            return
        except Exception as error:  # noqa: BLE001 - a bug costs its file, not the writer
            _log.exception("commit failed", key=str(file.key))
            await self._give_up(file, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
            return
        for piece, result in zip(pieces, results, strict=True):
            piece.request.results[piece.at] = _appended(result)
            if KafkaError(result.error).retriable:
                self._lost.add(piece.item)
        self.stats.files += 1
        self.stats.bytes += to_commit.size
        self.stats.batches += len(to_commit.batches)
        self.stats.commit_seconds += self._clock.monotonic() - began
        self.stats.last_commit_ms = self._clock.now_ms()
        file.fail(ErrorCode.KAFKA_STORAGE_ERROR, "An earlier batch of the producer failed.")

    async def _commit_until_known(
        self, to_commit: FileToCommit, file: WalFile
    ) -> list[CommitResult]:
        """An outcome that is not known is asked for again, with the same key."""
        delay = _RETRY_SECONDS
        while True:
            try:
                return await self._plane.commit_file(to_commit)
            except KafkaError as error:
                again = error.ambiguous or error.retriable
                if not again or file.key is None or not self._in_time(file.key):
                    raise
                _log.warning("commit not known, asked again", key=str(file.key), why=str(error))
            await asyncio.sleep(delay * (0.5 + self._rng.random()))
            delay = min(delay * 2, _RETRY_SECONDS_MAX)

    async def _give_up(self, file: WalFile, error: KafkaError | ObjectError) -> None:
        """Tell everybody that the file failed, and remove what certainly nobody will need."""
        self.stats.failed_files += 1
        _log.error("file failed", key=str(file.key), why=str(error))
        file.lose(self._lost)
        unknown = isinstance(error, KafkaError) and error.ambiguous
        code = ErrorCode.REQUEST_TIMED_OUT if unknown else ErrorCode.KAFKA_STORAGE_ERROR
        file.fail(code, str(error))
        if isinstance(error, KafkaError) and not unknown and file.key is not None:
            await self._remove_unknown(file.key)

    async def _remove_unknown(self, key: ObjectKey) -> None:
        try:
            described = await self._plane.describe_files([str(key)])
            if described[0].error is ErrorCode.RESOURCE_NOT_FOUND:
                await self._store.delete_many([key])
        except (KafkaError, ObjectError) as error:
            # The scan for orphans will find it.
            _log.warning("refused file not removed", key=str(key), why=str(error))


def _appended(result: CommitResult) -> AppendResult:
    return AppendResult(
        result.error,
        result.assigned_base_offset,
        result.log_append_time,
        result.log_start_offset,
        result.message,
    )
