"""Reads remote segments for consumers: the shell around the steps of ``plan.py``.

A read takes what is in memory at once, without a task; only one that must wait gets a slot. So many
wait at once, so many more may queue; the same read asked for again joins the one under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.objects.store import ObjectError
from skylog.tiered.reading import locating, plan, searching
from skylog.tiered.reading.ahead import ReadAhead
from skylog.tiered.reading.chunks import ChunkCache, keys_of
from skylog.tiered.reading.needs import (
    Bytes,
    DamagedSegmentError,
    Forget,
    FoundRecord,
    HoleError,
    Index,
    Keep,
    Need,
    RemoteData,
    RemoteRead,
    Search,
    Segments,
    TimeSearch,
)
from skylog.tiered.slots import Slots
from skylog.wire.records import find_record

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import KnownLogs, RemoteStorage, SegmentsAtHand
    from skylog.tiered.reading.indexes import IndexCache
    from skylog.tiered.reading.locating import RangeFound, RangeWanted
    from skylog.tiered.segments import TopicIdPartition

T = TypeVar("T")
Steps: TypeAlias = Generator[Need, object, T]
Begin: TypeAlias = Callable[[Segments], "Steps[T]"]

_log = get_logger("tiered.reader")
# How long a read waits for the metadata of a partition that came here just now.
READY_SECONDS_MAX: Final = 0.1
# After this many bytes from memory, other tasks get a turn: they may be scanned batch by batch.
TURN_BYTES: Final = 2 * 1024 * 1024
# The same failure is logged once in so long, and so many different ones are remembered.
TOLD_AGAIN_SECONDS: Final = 60.0
TOLD_MAX: Final = 1000
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The reader's part of the broker's settings; most of them may change."""

    readers: int = 10
    pending_max: int = 100
    cache_bytes_max: int = 64 * 1024 * 1024
    prefetch_bytes_max: int = 16 * 1024 * 1024


class RemoteReader:
    """All calls come from the event loop."""

    def __init__(
        self,
        logs: KnownLogs,
        storage: RemoteStorage,
        indexes: IndexCache,
        system: System,
        counts: TieredCounts,
        settings: ReaderSettings | None = None,
        *,
        at_hand: SegmentsAtHand | None = None,
    ) -> None:
        settings = settings or ReaderSettings()
        self._logs = logs
        self._system = system
        self._counts = counts
        self.indexes = indexes
        self.ahead = ReadAhead(system.clock, settings.prefetch_bytes_max)
        self.chunks = ChunkCache(storage, at_hand, settings.cache_bytes_max, self.ahead.used)
        self.slots = Slots(settings.readers)
        self._pending_max = settings.pending_max
        self._hints = plan.Hints()
        self._told: dict[str, float] = {}
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    def configure(self, settings: ReaderSettings) -> None:
        """Settings that changed while the broker runs."""
        self.slots.resize(settings.readers)
        self._pending_max = settings.pending_max
        self.ahead.bytes_max = settings.prefetch_bytes_max
        self.chunks.resize(settings.cache_bytes_max)

    # -- questions -----------------------------------------------------------------------------

    def read(self, wanted: RemoteRead) -> RemoteData | Awaitable[RemoteData]:
        """The data, or what to wait for; errors are ``KafkaError``.

        UNKNOWN_SERVER_ERROR if too many wait already, or the store fails; REPLICA_NOT_AVAILABLE
        while the partition's metadata is not known; ``HoleError``.
        """
        self._counts.of(wanted.topic).fetch_requests += 1
        return self._ask(wanted.partition, wanted, partial(self._reading, wanted))

    def find_timestamp(
        self, partition: TopicIdPartition, wanted: TimeSearch
    ) -> FoundRecord | Awaitable[FoundRecord | None] | None:
        """The first record of remote segments at or after a time, or what to wait for."""
        search = partial(searching.find_timestamp, wanted=wanted)
        return self._ask(partition, (partition, wanted), search)

    def locate(
        self, partition: TopicIdPartition, wanted: RangeWanted
    ) -> RangeFound | Awaitable[RangeFound]:
        """Where the batches of a range are, or what to wait for."""
        return self._ask(partition, (partition, wanted), partial(locating.locate, wanted=wanted))

    def segments_of(self, partition: TopicIdPartition) -> RemoteLog | None:
        """None while they are not known."""
        return self._logs.get(partition)

    async def close(self) -> None:
        await end_tasks(self._under_way.values())
        self.ahead.close()
        await self.chunks.close()
        await self.indexes.close()

    def _reading(self, wanted: RemoteRead, remote: Segments) -> Generator[Need, object, RemoteData]:
        data, segment, begin, end = yield from plan.read(remote, wanted, self._hints)
        self._counts.of(wanted.topic).fetch_bytes += data.size
        if data.size:
            for key in keys_of(segment, begin, end):
                self.ahead.used(key)
            if keys_of(segment, begin, end)[-1] in self.chunks:
                self.ahead.moved(self.chunks, remote, wanted, (segment, end, data.next_offset))
        return data

    # -- answers -------------------------------------------------------------------------------

    def _ask(
        self, partition: TopicIdPartition, question: Hashable, begin: Begin[T]
    ) -> T | Awaitable[T]:
        task = self._under_way.get(question)
        if task is not None:
            return asyncio.shield(task)
        remote = self._logs.get(partition)
        steps: Steps[T] | None = None
        need: Need | None = None
        if remote is not None:
            began = self._counts.remote_read.begin()
            steps = begin(remote)
            try:
                need = self._take(steps, None)
            except StopIteration as done:
                self._counts.remote_read.succeeded(began)
                found: T = done.value
                return found
            except KafkaError as error:
                self._failed(error)
                raise
        if not self.slots.is_free and self.slots.waiting >= self._pending_max:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "too many remote reads are waiting")
        turn = self.slots.claim()
        task = asyncio.ensure_future(self._wait(partition, begin, steps, need, turn))
        self._under_way[question] = task
        task.add_done_callback(partial(self._ended, question))
        return asyncio.shield(task)

    def _ended(self, question: Hashable, task: asyncio.Task[Any]) -> None:
        self._under_way.pop(question, None)
        if not task.cancelled():
            task.exception()  # the request may be answered already

    async def _wait(
        self,
        partition: TopicIdPartition,
        begin: Begin[T],
        steps: Steps[T] | None,
        need: Need | None,
        turn: asyncio.Future[None],
    ) -> T:
        try:
            await turn
            return await self._run(partition, begin, steps, need)
        finally:
            if turn.done() and not turn.cancelled():
                self.slots.leave()

    async def _run(
        self,
        partition: TopicIdPartition,
        begin: Begin[T],
        steps: Steps[T] | None,
        need: Need | None,
    ) -> T:
        began = self._counts.remote_read.begin()
        try:
            if steps is None:
                steps = begin(await self._ready(partition))
            found = await self._finish(steps, need)
        except (KafkaError, ObjectError) as error:
            self._counts.remote_read.failed(began)
            self._failed(error)
            if isinstance(error, KafkaError):
                raise
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        self._counts.remote_read.succeeded(began)
        return found

    async def _ready(self, partition: TopicIdPartition) -> Segments:
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                return await self._logs.ready(partition)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, "the remote segments are not known yet"
            ) from None

    def _failed(self, error: KafkaError | ObjectError) -> None:
        if isinstance(error, HoleError):
            self._counts.holes += 1
            self._tell("hole in remote segments", str(error))
        elif isinstance(error, DamagedSegmentError):
            self._counts.corrupt += 1
            self._tell("damaged remote segment", str(error))
        elif isinstance(error, ObjectError):
            self._tell("remote segment not read", str(error))

    def _tell(self, what: str, why: str) -> None:
        """Once in a while: a consumer asks again and again."""
        now = self._system.clock.monotonic()
        if now - self._told.get(why, -inf) >= TOLD_AGAIN_SECONDS:
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told[why] = now
            _log.error(what, why=why)

    # -- steps ---------------------------------------------------------------------------------

    def _take(self, steps: Steps[T], answer: object) -> Need:
        """Go on while all is in memory; returns what must be waited for.

        StopIteration has the result.
        """
        left = TURN_BYTES
        while True:
            need = steps.send(answer)
            answer = self._now(need) if left > 0 else _ABSENT
            if isinstance(need, Bytes):
                left -= need.end - need.start
            if answer is _ABSENT:
                return need

    def _now(self, need: Need) -> object:
        found: object = _ABSENT
        if isinstance(need, Bytes):
            found = self.chunks.now(need.segment, need.start, need.end)
        elif isinstance(need, Index):
            found = self.indexes.now(need.segment, need.kind)
        elif isinstance(need, Forget):
            self.chunks.forget(need.segment, need.start, need.end)
            return None
        elif isinstance(need, Keep):
            self.indexes.keep(need.segment, need.offsets, need.times)
            return None
        return _ABSENT if found is None else found

    async def _finish(self, steps: Steps[T], need: Need | None) -> T:
        answer: object = None
        try:
            while True:
                if need is not None:
                    answer = await self._obtain(need)
                need = self._take(steps, answer)
        except StopIteration as done:
            found: T = done.value
            return found

    async def _obtain(self, need: Need) -> object:
        if isinstance(need, Bytes):
            return await self.chunks.get(need.segment, need.start, need.end)
        if isinstance(need, Index):
            return await self.indexes.get(need.segment, need.kind)
        if isinstance(need, Search):
            search = partial(find_record, need.batch, need.timestamp, need.offset_min)
            return await self._system.executor.run(search)  # it may have to be decompressed
        return self._now(need)
