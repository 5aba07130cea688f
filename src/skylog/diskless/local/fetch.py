"""A fetch over partitions with local copies: the source is chosen per partition.

Local first, then waiting at the tail, then objects. The budget is spent in the order of the
requests' sources: the first request's source comes first, so that the first partition of a session
is always served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from skylog.diskless.local.copy import LocalCopy
from skylog.diskless.local.partitions import LocalPartition, LocalPartitions
from skylog.diskless.local.plan import copy_answers
from skylog.diskless.local.threads import Threads
from skylog.diskless.reader import DisklessReader, ReadRequest, ReadResult
from skylog.diskless.regions import Source
from skylog.kernel.errors import ErrorCode
from skylog.log.files import WouldBlock

# Slower disks are not waited for.
READ_SECONDS_MAX: Final = 1.0


class _Answer:
    """The results so far, by the request's index."""

    def __init__(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int, min_one: bool
    ) -> None:
        self.requests = requests
        self.results: dict[int, ReadResult] = {}
        self.left = fetch_max_bytes
        self.min_one = min_one

    def add(self, number: int, result: ReadResult) -> None:
        self.results[number] = result
        self.min_one = self.min_one and not result.size
        self.left = max(self.left - result.size, 0)


class LocalFetch:
    """Reads copies, and from objects what they do not contain. All calls come from the event
    loop."""

    def __init__(
        self, partitions: LocalPartitions, objects: DisklessReader, threads: Threads
    ) -> None:
        self._partitions = partitions
        self._objects = objects
        self._threads = threads

    async def fetch(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int, *, min_one: bool = True
    ) -> list[ReadResult]:
        """Records for each request, in order, within one budget."""
        local = [number for number, one in enumerate(requests) if self._is_local(one)]
        if not local:
            return await self._objects.fetch(requests, fetch_max_bytes, min_one=min_one)
        held = set(local)
        remote = [number for number in range(len(requests)) if number not in held]
        answer = _Answer(requests, fetch_max_bytes, min_one)
        if remote and 0 not in held:
            await self._read_objects(answer, remote)
            remote = []
        remote += await self._read_copies(answer, local)
        if remote:
            await self._read_objects(answer, remote)
        return [answer.results[number] for number in range(len(requests))]

    def _is_local(self, request: ReadRequest) -> bool:
        one = self._partitions.get((request.topic_id, request.partition))
        return one is not None and answered_by_copy(one, request.offset)

    async def _read_objects(self, answer: _Answer, numbers: list[int]) -> None:
        asked = [answer.requests[number] for number in numbers]
        found = await self._objects.fetch(asked, answer.left, min_one=answer.min_one)
        for number, result in zip(numbers, found, strict=True):
            answer.add(number, result)

    async def _read_copies(self, answer: _Answer, numbers: list[int]) -> list[int]:
        """Returns those that must be read from objects instead."""
        missing = []
        for number in numbers:
            request = answer.requests[number]
            size = min(request.max_bytes, answer.left)
            result = await self._read_copy(request, size, min_one=answer.min_one)
            if result is None:
                missing.append(number)
            else:
                answer.add(number, result)
        return missing

    async def _read_copy(
        self, request: ReadRequest, max_bytes: int, *, min_one: bool
    ) -> ReadResult | None:
        one = self._partitions.get((request.topic_id, request.partition))
        copy = one.copy if one is not None else None
        if one is None or copy is None:
            return None
        source = _source(one, request.offset)
        if source is Source.WAL:
            return None
        found = memoryview(b"")
        if source is Source.LOCAL:
            try:
                found = await self._read_batches(copy, request.offset, max_bytes, min_one)
            except TimeoutError:
                self._partitions.stats.disk_errors += 1
                return None
            except Exception as error:  # noqa: BLE001 - any error: there is another copy
                self._went_wrong(one, copy, request.offset, error)
                return None
            if request.offset < one.log_start:
                return None  # deleted meanwhile
            self._partitions.stats.reads += 1
            self._partitions.stats.bytes_read += len(found)
        offsets = one.log_start, one.high_watermark
        return ReadResult(ErrorCode.NONE, (found,), len(found), *offsets)

    async def _read_batches(
        self, copy: LocalCopy, offset: int, max_bytes: int, min_one: bool
    ) -> memoryview:
        read = partial(copy.read, offset, max_bytes, min_one=min_one)
        try:
            return read(block=False)
        except WouldBlock:
            async with asyncio.timeout(READ_SECONDS_MAX):
                return await self._threads.run(partial(read, block=True))

    def _went_wrong(
        self, one: LocalPartition, copy: LocalCopy, offset: int, error: Exception
    ) -> None:
        # While files change, or after retention, this does not mean damage.
        if one.round is None and copy.region.start <= offset:
            self._partitions.spoiled(one, copy, error)


def answered_by_copy(one: LocalPartition, offset: int) -> bool:
    return _source(one, offset) is not Source.WAL


def _source(one: LocalPartition, offset: int) -> Source:
    return copy_answers(offset, one.region, following=one.following)
