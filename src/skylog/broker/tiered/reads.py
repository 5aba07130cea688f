"""Answers of partitions whose records are in remote segments: of classic ones here, of diskless
ones in ``diskless_reads.py``.

All remote partitions of a fetch are read at once, and so are all that a request searches by time.
What is not done in time is answered without records; the read itself goes on into the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from skylog.broker.partitions.port import Found
from skylog.broker.partitions.questions import Question
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.files import WouldBlock, storage_error
from skylog.tiered.quota import ByteQuota
from skylog.tiered.reading.needs import FoundRecord, HoleError, RemoteData, RemoteRead, TimeSearch
from skylog.tiered.reading.pieces import Piece, pieces
from skylog.tiered.reading.reader import TURN_BYTES
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.buffers import chained
from skylog.wire.messages.fetch_response import AbortedTransaction, PartitionData

if TYPE_CHECKING:
    from skylog.broker.partitions.port import Budget, Reader
    from skylog.kernel.settings.tiered import TieredSettings
    from skylog.kernel.system import System
    from skylog.replication.partition import Partition
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.reading.reader import RemoteReader
    from skylog.wire.messages.fetch_request import FetchPartition

T = TypeVar("T")
_NOTHING: Final = Found()
# A read that is done, or goes on.
Begun: TypeAlias = RemoteData | Awaitable[RemoteData] | KafkaError


class RemoteFetch(NamedTuple):
    """One partition of a fetch. ``answer`` has everything but the records."""

    replica: Partition
    wanted: RemoteRead
    answer: PartitionData
    # Where the local log began when the read did.
    local_start: int
    # Reads the local log from an offset on, if remote segments have nothing up to there.
    read_on: Callable[[int], PartitionData | Question[PartitionData]]


class RemoteSearch(NamedTuple):
    """One partition of a search by time."""

    replica: Partition
    timestamp: int
    # What is at or above it must not be returned.
    limit: int
    # 0: the broker's own limit.
    timeout_ms: int
    # Searches the local log; blocks.
    search_on: Callable[[], Found]


class RemoteReads:
    """All calls come from the event loop."""

    def __init__(
        self,
        reader: RemoteReader,
        settings: TieredSettings,
        counts: TieredCounts,
        system: System,
    ) -> None:
        self._reader = reader
        self._settings = settings
        self._quota = ByteQuota(
            settings.fetch_bytes_per_second_max,
            settings.fetch_window_count,
            settings.fetch_window_seconds,
        )
        self._counts = counts
        self._system = system

    def reconfigure(self, settings: TieredSettings) -> None:
        """Settings changed while the broker runs."""
        self._settings = settings
        self._quota.bytes_per_second_max = settings.fetch_bytes_per_second_max

    # -- shared --------------------------------------------------------------------------------

    def is_throttled(self) -> bool:
        throttle_ms = self._quota.throttle_ms(self._system.clock.now_ms())
        if throttle_ms > 0:
            self._counts.fetch_throttle.waited(throttle_ms / 1000)
        return throttle_ms > 0

    def record(self, size: int) -> None:
        """Bytes that an answer has."""
        self._quota.record(size, self._system.clock.now_ms())

    def failed(self, topic: str) -> None:
        self._counts.of(topic).fetch_errors += 1

    async def begin(self, wanted: Sequence[RemoteRead]) -> list[Begun]:
        """Begin to read all of them; what is in memory is there at once."""
        reads: list[Begun] = []
        turn_bytes = 0
        for one in wanted:
            try:
                found = self._reader.read(one)
            except KafkaError as error:
                reads.append(error.without_frames())
                continue
            reads.append(found)
            if isinstance(found, RemoteData):
                turn_bytes += found.size
            if turn_bytes >= TURN_BYTES:
                turn_bytes = 0
                await asyncio.sleep(0)
        return reads

    async def finish(self, begun: Sequence[Begun]) -> list[RemoteData | KafkaError | None]:
        """The results; None for what is not done in time, and goes on into the cache."""
        results = await all_within(begun, self._settings.fetch_wait_ms_max / 1000)
        self._counts.fetches_expired += results.count(None)
        return results

    # -- by offset -----------------------------------------------------------------------------

    def read(
        self,
        replica: Partition,
        wanted: FetchPartition,
        reader: Reader,
        budget: Budget,
        answer: PartitionData,
        read_on: Callable[[int], PartitionData | Question[PartitionData]],
    ) -> PartitionData | Question[PartitionData]:
        """A consumer's fetch offset is below the local log's start."""
        if wanted.partition_max_bytes < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        size = min(wanted.partition_max_bytes, budget.reservable)
        if self.is_throttled():
            return answer
        is_first = budget.untouched and not budget.held
        if size <= 0 and not is_first:
            return answer
        asked = RemoteRead(
            topic=replica.topic,
            partition=_key(replica),
            offset=wanted.fetch_offset,
            bytes_max=size,
            epochs=tuple(replica.log.companions.epochs),
            min_one=is_first,
            read_committed=reader.read_committed,
        )
        local_start = replica.log.local_log_start_offset
        fetch = RemoteFetch(replica, asked, answer, local_start, read_on)
        return Question(self.resolve, fetch, reserves=max(size, 1))

    async def resolve(
        self, asked: Sequence[RemoteFetch], budget: Budget
    ) -> list[PartitionData | KafkaError]:
        results = await self.finish(await self.begin([one.wanted for one in asked]))
        return [
            await self._answer(one, data, budget) for one, data in zip(asked, results, strict=True)
        ]

    async def _answer(
        self, one: RemoteFetch, data: RemoteData | KafkaError | None, budget: Budget
    ) -> PartitionData | KafkaError:
        if data is None:
            return one.answer
        if isinstance(data, KafkaError):
            return self._error(one, data)
        try:
            if not data.size and data.next_offset > one.wanted.offset:
                return await self._read_on(one, data.next_offset, budget)
            if data.size:
                await self._fill(one, data)
        except KafkaError as error:
            return error.without_frames()
        return one.answer

    def _error(self, one: RemoteFetch, error: KafkaError) -> KafkaError:
        if one.replica.deleted:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if one.wanted.offset < one.replica.log.log_start_offset:
            return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)  # deleted while it was read
        self.failed(one.wanted.topic)
        return error

    async def _fill(self, one: RemoteFetch, data: RemoteData) -> None:
        answer = one.answer
        if one.wanted.read_committed:
            aborted = await self._aborted(one, data)
            if one.replica.log.local_log_start_offset != one.local_start:
                # A segment that is remote only since may have been passed over by both searches:
                # the client asks again.
                return
            answer.aborted_transactions = [AbortedTransaction(*each) for each in aborted]
        self.record(data.size)
        answer.records = chained(data.parts, data.size)

    async def _aborted(self, one: RemoteFetch, data: RemoteData) -> dict[tuple[int, int], None]:
        """Producer and first offset of each, of remote segments and of the local log."""
        found = dict.fromkeys((each.producer_id, each.first_offset) for each in data.aborted)
        if data.aborted_from < 0:
            return found
        search = partial(
            one.replica.log.reader.aborted_transactions, data.aborted_from, data.aborted_to
        )
        try:
            try:
                local = search(block=False)
            except WouldBlock:
                local = await self._system.executor.run(partial(search, block=True))
        except OSError as error:
            raise storage_error(f"read of {one.wanted.topic} failed", error) from error
        return found | dict.fromkeys((each.producer_id, each.first_offset) for each in local)

    async def _read_on(
        self, one: RemoteFetch, offset: int, budget: Budget
    ) -> PartitionData | KafkaError:
        """Remote segments end in a gap that compaction left; the local log goes on behind it."""
        if offset < one.replica.log.local_log_start_offset:
            self._counts.holes += 1
            raise HoleError(one.wanted.partition, offset)
        found = one.read_on(offset)
        if isinstance(found, Question):
            (found,) = await found.resolver([found.asked], budget)
        return found

    # -- by time -------------------------------------------------------------------------------

    async def search(self, asked: Sequence[RemoteSearch]) -> list[Found | KafkaError]:
        searches: list[Found | KafkaError | Awaitable[Found]] = [self._search(one) for one in asked]
        # The same for all of a request.
        return await self.within_time(searches, asked[0].timeout_ms)

    @property
    def search_seconds(self) -> float:
        return self._settings.list_offsets_timeout_ms / 1000

    async def within_time(
        self,
        searches: Sequence[Found | KafkaError | Awaitable[Found]],
        timeout_ms: int,
    ) -> list[Found | KafkaError]:
        """The results; 0 is the broker's limit."""
        seconds = timeout_ms / 1000 if timeout_ms > 0 else self.search_seconds
        found = await all_within(searches, seconds)
        answers: list[Found | KafkaError] = []
        for answer in found:
            if answer is None:
                self._counts.list_offsets_expired += 1
                answers.append(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
            else:
                answers.append(answer)
        return answers

    async def _search(self, one: RemoteSearch) -> Found:
        """The first record of remote segments, else of the local log."""
        log = one.replica.log
        while True:
            local_start = log.local_log_start_offset
            epochs = tuple(log.companions.epochs)
            search = TimeSearch(one.timestamp, log.log_start_offset, local_start, epochs)
            found = self._reader.find_timestamp(_key(one.replica), search)
            if found is not None and not isinstance(found, FoundRecord):
                found = await found
            if found is not None:
                return Found(*found) if found.offset < one.limit else _NOTHING
            local = await self._system.executor.run(one.search_on)
            if log.local_log_start_offset == local_start:
                return local
            # What is remote only since was in neither search.

    # -- for bulk readers ----------------------------------------------------------------------

    def byte_size(self, replica: Partition) -> int:
        """Of all that is remote, even if it is local as well."""
        remote = self._reader.segments_of(_key(replica))
        return 0 if remote is None else remote.finished_bytes

    def pieces(self, replica: Partition, bytes_max: int) -> list[Piece]:
        """What is remote only; REPLICA_NOT_AVAILABLE if that is not known yet."""
        log = replica.log
        if log.local_log_start_offset <= log.log_start_offset:
            return []
        remote = self._reader.segments_of(_key(replica))
        if remote is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE)
        epochs = tuple(log.companions.epochs)
        start, end = log.log_start_offset, log.local_log_start_offset
        return list(pieces(remote, epochs, start, end, bytes_max))


def _key(replica: Partition) -> TopicIdPartition:
    return TopicIdPartition(replica.topic_id, replica.index)


async def all_within(
    begun: Sequence[T | KafkaError | Awaitable[T]], seconds: float
) -> list[T | KafkaError | None]:
    """The results; None for what is not done in time, and goes on."""
    results: list[T | KafkaError | None] = []
    waits: dict[int, asyncio.Future[T]] = {}
    for index, one in enumerate(begun):
        if isinstance(one, Awaitable):
            waits[index] = asyncio.ensure_future(one)
            waits[index].add_done_callback(_seen)
            results.append(None)
        else:
            results.append(one)
    if waits:
        await asyncio.wait(waits.values(), timeout=seconds)
    for index, wait in waits.items():
        if wait.done():
            try:
                results[index] = wait.result()
            except KafkaError as error:
                results[index] = error.without_frames()
    return results


def _seen(ended: asyncio.Future[T]) -> None:
    """The request may be answered, or given up, before it ends."""
    if not ended.cancelled():
        ended.exception()
