"""Fetches of diskless partitions whose older records are in tiered segments.

A fetch goes to the first that has its offset: the local copy, the tail, tiered segments, WAL
objects. That is decided for each partition by what this broker knows, and nobody is asked for it.

    tiered segments have it      they are read, and meanwhile the coordinator tells the log's ends
      their read fails           the WAL, which may still have it
    nothing known here has it    the WAL
      which says: moved          wait a moment until this broker knows the segment, and read that
      or has lost its object     the same: as after a restore, which brings pruned batches back
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from skylog.broker.partitions.diskless_errors import read_error, tiered_error
from skylog.broker.partitions.questions import Question
from skylog.diskless.plane import LogInfo
from skylog.diskless.reader import ReadRequest, ReadResult
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.reading.needs import RemoteData, RemoteRead
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.buffers import chained
from skylog.wire.messages.fetch_response import PartitionData

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.partitions.port import Budget, Reader
    from skylog.broker.tiered.prefixes import TieredPrefixes
    from skylog.broker.tiered.reads import RemoteReads
    from skylog.diskless.partitions import DisklessPartition
    from skylog.wire.messages.fetch_request import FetchPartition

# Diskless partitions have one epoch.
EPOCHS: Final = ((SERVED_EPOCH, 0),)
# How long a read waits until this broker knows a segment that the coordinator knows.
MOVED_SECONDS_MAX: Final = 0.1
# The WAL has had the records, and cannot return them.
_GONE: Final = (ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, ErrorCode.KAFKA_STORAGE_ERROR)


class TieredFetch(NamedTuple):
    """One partition of a fetch."""

    place: TopicIdPartition
    topic: str
    offset: int
    bytes_max: int
    min_one: bool
    read_committed: bool

    @property
    def remote(self) -> RemoteRead:
        return RemoteRead(
            topic=self.topic,
            partition=self.place,
            offset=self.offset,
            bytes_max=self.bytes_max,
            epochs=EPOCHS,
            min_one=self.min_one,
        )

    def answer(self, log_start_offset: int, high_watermark: int) -> PartitionData:
        """Without records. There are no transactions."""
        return PartitionData(
            self.place.partition_index,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start_offset=log_start_offset,
            aborted_transactions=[] if self.read_committed else None,
            records=b"",
        )


class DisklessReads:
    """All calls come from the event loop."""

    def __init__(
        self, engine: DisklessEngine, prefixes: TieredPrefixes, reads: RemoteReads
    ) -> None:
        self._engine = engine
        self._prefixes = prefixes
        self._reads = reads

    # -- tiered segments have it ---------------------------------------------------------------

    def read(
        self,
        place: TopicIdPartition,
        state: DisklessPartition,
        wanted: FetchPartition,
        reader: Reader,
        budget: Budget,
    ) -> Question[PartitionData] | None:
        """None: the local copy, the tail or the WAL answers."""
        offset, remote = wanted.fetch_offset, self._prefixes.known(place)
        if remote is None or not remote.has(SERVED_EPOCH, offset):
            if remote is None and 0 <= offset < state.high_watermark:
                self._prefixes.learn_soon(place)  # it reads from behind
            return None
        local = self._engine.local
        if local is not None and local.answers(place, offset):
            return None
        size = max(min(wanted.partition_max_bytes, budget.reservable), 0)
        is_first = budget.untouched and not budget.held
        fetch = TieredFetch(place, state.topic, offset, size, is_first, reader.read_committed)
        if self._reads.is_throttled() or (not size and not is_first):
            return Question(self.look, fetch)
        return Question(self.resolve, fetch, reserves=max(size, 1))

    async def look(
        self, asked: Sequence[TieredFetch], _budget: Budget
    ) -> list[PartitionData | KafkaError]:
        """Only the ends of the logs: no records can be returned now."""
        infos = await self._infos(asked)
        return [
            _out_of(info, one) or one.answer(info.log_start_offset, info.high_watermark)
            for one, info in zip(asked, infos, strict=True)
        ]

    async def resolve(
        self, asked: Sequence[TieredFetch], _budget: Budget
    ) -> list[PartitionData | KafkaError]:
        begun = await self._reads.begin([one.remote for one in asked])
        infos = await self._infos(asked)
        results = await self._reads.finish(begun)
        answers: list[PartitionData | KafkaError] = []
        failed: list[int] = []
        for number, (one, info, data) in enumerate(zip(asked, infos, results, strict=True)):
            answer: PartitionData | KafkaError | None = _out_of(info, one)
            if answer is None:
                answer = self._filled(one, data, info.log_start_offset, info.high_watermark)
            if answer is None:
                failed.append(number)
                answer = self._without(one, data, info)
            answers.append(answer)
        if failed:
            await self._read_wal(asked, failed, answers)
        return answers

    async def _infos(self, asked: Sequence[TieredFetch]) -> list[LogInfo]:
        try:
            return await self._engine.plane.log_info([one.place for one in asked])
        except KafkaError as error:
            return [LogInfo(error.code)] * len(asked)

    def _filled(
        self,
        one: TieredFetch,
        data: RemoteData | KafkaError | None,
        log_start_offset: int,
        high_watermark: int,
    ) -> PartitionData | None:
        """None if there is nothing that may be answered."""
        if data is None or isinstance(data, KafkaError):
            return None
        is_gap = not data.size and data.next_offset != one.offset
        if is_gap or data.next_offset > high_watermark:
            return None
        answer = one.answer(log_start_offset, high_watermark)
        if data.size:
            self._reads.record(data.size)
            answer.records = chained(data.parts, data.size)
        return answer

    def _without(
        self, one: TieredFetch, data: RemoteData | KafkaError | None, info: LogInfo
    ) -> PartitionData | KafkaError:
        """What is answered unless the WAL has it."""
        if data is None:  # it goes on: the next fetch finds it
            return one.answer(info.log_start_offset, info.high_watermark)
        self._reads.failed(one.topic)
        # Another broker may have told of segments that are gone.
        self._prefixes.forget(one.place)
        code = data.code if isinstance(data, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
        return tiered_error(code)

    async def _read_wal(
        self,
        asked: Sequence[TieredFetch],
        numbers: Sequence[int],
        answers: list[PartitionData | KafkaError],
    ) -> None:
        """Answer those whose records are still in WAL objects."""
        ones = [asked[number] for number in numbers]
        requests = [ReadRequest(*one.place, one.offset, one.bytes_max) for one in ones]
        size = sum(one.bytes_max for one in ones)
        try:
            results = await self._engine.fetch(requests, size, min_one=ones[0].min_one)
        except KafkaError:
            return
        for number, one, result in zip(numbers, ones, results, strict=True):
            if result.error is ErrorCode.NONE and result.size:
                answer = one.answer(result.log_start_offset, result.high_watermark)
                answer.records = chained(result.parts, result.size)
                answers[number] = answer

    # -- the WAL does not have it --------------------------------------------------------------

    async def read_gone(
        self,
        asked: Sequence[tuple[ReadRequest, Reader]],
        results: Sequence[ReadResult],
        answers: list[PartitionData | KafkaError],
        budget: Budget,
    ) -> None:
        """Answer those of a fetch from the WAL whose records are there no more."""
        moved = [
            number
            for number, (one, result) in enumerate(zip(asked, results, strict=True))
            if result.error in _GONE and self._is_tiered(one[0])
        ]
        if not moved:
            return
        known = await asyncio.gather(*(self._reached(asked[number][0]) for number in moved))
        left = budget.left - sum(result.size for result in results)
        min_one = budget.untouched and left == budget.left
        is_throttled = self._reads.is_throttled()
        fetches: list[tuple[int, TieredFetch]] = []
        for number, remote in zip(moved, known, strict=True):
            request, reader = asked[number]
            if remote is None:
                continue
            place = TopicIdPartition(request.topic_id, request.partition)
            size = max(min(request.max_bytes, left), 0)
            one = TieredFetch(
                place, remote.topic, request.offset, size, min_one, reader.read_committed
            )
            result = results[number]
            if is_throttled:
                answers[number] = one.answer(result.log_start_offset, result.high_watermark)
            else:
                fetches.append((number, one))
                left, min_one = left - size, False
        found = await self._reads.finish(
            await self._reads.begin([one.remote for _, one in fetches])
        )
        for (number, one), data in zip(fetches, found, strict=True):
            start, end = results[number].log_start_offset, results[number].high_watermark
            answer = self._filled(one, data, start, end)
            info = LogInfo(ErrorCode.NONE, start, end)
            answers[number] = answer or self._without(one, data, info)

    def _is_tiered(self, request: ReadRequest) -> bool:
        state = self._engine.partitions.get(request.topic_id, request.partition)
        return state is not None and state.served is not None and state.served.tiered is self

    async def _reached(self, request: ReadRequest) -> RemoteLog | None:
        place = TopicIdPartition(request.topic_id, request.partition)
        has = partial(_has, request.offset)
        known = self._prefixes.known(place)
        if known is not None and has(known):
            return known
        return await self._prefixes.reaching(place, has, MOVED_SECONDS_MAX)


def _has(offset: int, remote: RemoteLog) -> bool:
    return remote.has(SERVED_EPOCH, offset)


def _out_of(info: LogInfo, one: TieredFetch) -> KafkaError | None:
    if info.error is not ErrorCode.NONE:
        return read_error(info.error)
    if info.log_start_offset <= one.offset <= info.high_watermark:
        return None
    return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
