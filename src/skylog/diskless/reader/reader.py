"""The reader of a broker: find batches → plan ranges → read → check and place → answer.

One object that cannot be read, or one batch that is not what it should be, ends the answer of its
own partition there: what came before is served, the others are not touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from skylog.diskless.plane import BatchCoordinate, ControlPlane, FindRequest, FindResult
from skylog.diskless.reader.cache import ObjectCache
from skylog.diskless.reader.objects import ObjectReader, ObjectReaderSettings
from skylog.diskless.reader.patch import serve
from skylog.diskless.reader.plan import Range, ranges_of
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.objects.store import ObjectError, ObjectStore
from skylog.wire.buffers import Buffer

_log = get_logger("diskless.reader")


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The reader's part of the node's settings."""

    objects: ObjectReaderSettings = field(default_factory=ObjectReaderSettings)
    batches_per_partition_max: int = 0


@dataclass(frozen=True, slots=True)
class ReadRequest:
    topic_id: Uuid
    partition: int
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Whole batches from the one that holds the offset on."""

    error: ErrorCode
    records: Buffer = b""
    log_start_offset: int = -1
    high_watermark: int = -1


@dataclass(slots=True)
class ReaderStats:
    """Totals for /metrics; ``corrupt`` and ``missing`` are what somebody should look at."""

    fetches: int = 0
    bytes: int = 0
    corrupt: int = 0
    missing: int = 0


class DisklessReader:
    """All calls come from the event loop."""

    def __init__(
        self,
        plane: ControlPlane,
        store: ObjectStore,
        cache: ObjectCache,
        clock: Clock,
        settings: ReaderSettings | None = None,
    ) -> None:
        self._settings = settings or ReaderSettings()
        self._plane = plane
        self._clock = clock
        self.objects = ObjectReader(store, cache, clock, self._settings.objects)
        self.stats = ReaderStats()
        self.find_stage = Stage(clock)

    async def fetch(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int
    ) -> list[ReadResult]:
        """Records for each request, in order, within one budget spent in that order."""
        found = await self._find(requests, fetch_max_bytes)
        results = await self.read_found(found)
        self.stats.fetches += 1
        self.stats.bytes += sum(len(result.records) for result in results)
        return results

    async def offsets(self, requests: Sequence[ReadRequest]) -> list[ReadResult]:
        """The same without records: the budget was spent on others."""
        return [
            ReadResult(found.error, b"", found.log_start_offset, found.high_watermark)
            for found in await self._find(requests, 0)
        ]

    async def _find(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int
    ) -> list[FindResult]:
        wanted = [FindRequest(r.topic_id, r.partition, r.offset, r.max_bytes) for r in requests]
        with self.find_stage.run():
            return await self._plane.find_batches(
                wanted, fetch_max_bytes, self._settings.batches_per_partition_max
            )

    async def read_found(self, found: Sequence[FindResult]) -> list[ReadResult]:
        """The records of what the plane has found, each range of an object read once."""
        data = await self._read_all(found)
        return [await self._answer(one, data) for one in found]

    async def read_batch(self, coordinate: BatchCoordinate) -> bytearray:
        """One batch, for who looks for a record in it."""
        data = await self._read_all([FindResult(ErrorCode.NONE, [coordinate])])
        return await self._serve(coordinate, data)

    async def _read_all(self, found: Sequence[FindResult]) -> dict[Range, memoryview | ObjectError]:
        """Every range that is not in the cache, all at once."""
        missing = [
            wanted
            for wanted in ranges_of(result.batches for result in found)
            if self.objects.cached(wanted) is None
        ]
        read = await asyncio.gather(
            *(self.objects.read(wanted) for wanted in missing), return_exceptions=True
        )
        data: dict[Range, memoryview | ObjectError] = {}
        for wanted, outcome in zip(missing, read, strict=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, ObjectError):
                raise outcome
            data[wanted] = outcome
        return data

    async def _answer(
        self, found: FindResult, data: dict[Range, memoryview | ObjectError]
    ) -> ReadResult:
        served: list[bytearray] = []
        error = found.error
        for coordinate in found.batches:
            try:
                served.append(await self._serve(coordinate, data))
            except KafkaError as failure:
                # The good beginning is served; the client meets the error with its next fetch.
                error = found.error if served else failure.code
                break
        records = served[0] if len(served) == 1 else b"".join(served)
        return ReadResult(error, records, found.log_start_offset, found.high_watermark)

    async def _serve(
        self, coordinate: BatchCoordinate, data: dict[Range, memoryview | ObjectError]
    ) -> bytearray:
        start, end = coordinate.byte_offset, coordinate.byte_offset + coordinate.byte_size
        wanted = Range(coordinate.object_key, start, end)
        pieces = self._from(data, coordinate) or self.objects.cached(wanted)
        try:
            if pieces is None:
                pieces = [await self.objects.read(wanted)]
            return serve(coordinate, pieces)
        except ObjectError as error:
            raise self._missing(coordinate, error) from error
        except KafkaError as error:
            return await self._serve_again(coordinate, wanted, error)

    def _from(
        self, data: dict[Range, memoryview | ObjectError], coordinate: BatchCoordinate
    ) -> list[memoryview] | None:
        for wanted, found in data.items():
            if wanted.holds(coordinate):
                if isinstance(found, ObjectError):
                    raise self._missing(coordinate, found)
                start = coordinate.byte_offset - wanted.start
                return [found[start : start + coordinate.byte_size]]
        return None

    async def _serve_again(
        self, coordinate: BatchCoordinate, wanted: Range, first: KafkaError
    ) -> bytearray:
        """Bytes were wrong: perhaps only in memory or on the way. Ask the store once more."""
        self.objects.forget(coordinate.object_key)
        try:
            return serve(coordinate, [await self.objects.read(wanted)])
        except ObjectError as error:
            raise self._missing(coordinate, error) from error
        except KafkaError:
            self.stats.corrupt += 1
            _log.error("corrupt batch", key=coordinate.object_key, why=first.message)
            raise

    def _missing(self, coordinate: BatchCoordinate, error: ObjectError) -> KafkaError:
        self.stats.missing += 1
        _log.error("object not read", key=coordinate.object_key, why=str(error))
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
