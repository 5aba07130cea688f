"""The reader of a broker: find batches → plan ranges → read → verify and place → respond.

An unreadable object or an invalid batch ends the response of its own partition there: what came
before is served, and the other partitions are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.plane import ControlPlane, FindRequest, FindResult
from skylog.diskless.reader.cache import HeldObject, ObjectCache
from skylog.diskless.reader.objects import ObjectReader, ObjectReaderSettings
from skylog.diskless.reader.patch import Served
from skylog.diskless.reader.plan import GAP_BYTES_MAX, Range, ranges_of, runs_of
from skylog.diskless.rules.offsets import FindBudget
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.objects.store import ObjectError, ObjectStore
from skylog.wire.buffers import Buffer

_log = get_logger("diskless.reader")
# A response keeps objects in memory until it is sent: at most this many times its own size.
USED_SHARE: Final = 4
# After this many bytes from memory, about three milliseconds, other tasks get a turn.
TURN_BYTES: Final = 8 * 1024 * 1024


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
    """Whole batches, starting with the one that contains the offset, as parts of their objects."""

    error: ErrorCode
    parts: Sequence[Buffer] = ()
    size: int = 0
    log_start_offset: int = -1
    high_watermark: int = -1

    @property
    def records(self) -> Buffer:
        """All records in one piece: a copy, unless there is only one part."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)


# Batches to serve, or why their object was not read.
_Placed: TypeAlias = dict[BatchCoordinate, Served | ObjectError]


@dataclass(slots=True)
class ReaderStats:
    """Totals for /metrics; ``corrupt`` and ``missing`` need an operator's attention."""

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
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int, *, min_one: bool = True
    ) -> list[ReadResult]:
        """Records for each request, in order, within one budget spent in that order.

        With ``min_one`` the first batch is returned even if it is larger than that.
        """
        found = await self._find(requests, fetch_max_bytes, min_one)
        results = await self.read_found(found)
        self.stats.fetches += 1
        self.stats.bytes += sum(result.size for result in results)
        return results

    async def _find(
        self, requests: Sequence[ReadRequest], fetch_max_bytes: int, min_one: bool
    ) -> list[FindResult]:
        wanted = [FindRequest(r.topic_id, r.partition, r.offset, r.max_bytes) for r in requests]
        limits = fetch_max_bytes, self._settings.batches_per_partition_max
        with self.find_stage.run():
            found = await self._plane.find_batches(wanted, *limits)
        if min_one:
            return found
        # A plane always grants the first batch.
        budget = FindBudget(*limits, min_one=False)
        return [budget.cut(*pair) for pair in zip(found, wanted, strict=True)]

    async def read_found(
        self, found: Sequence[FindResult], *, gap_bytes_max: int = GAP_BYTES_MAX
    ) -> list[ReadResult]:
        """The records of the batches found; each range of an object is read once. Ranges with
        smaller gaps than that are read as one."""
        runs = [runs_of(one.batches) for one in found]
        placed = await self._place_all(runs, gap_bytes_max)
        return [await self._answer(*one, placed) for one in zip(found, runs, strict=True)]

    async def read_batch(self, coordinate: BatchCoordinate) -> bytearray:
        """One batch, to search for a record in it."""
        served = await self._serve(coordinate, await self._place_all([[coordinate]]))
        if served.error is not None:
            raise served.error
        return bytearray().join(served.parts)

    async def _place_all(
        self,
        partitions: Sequence[Sequence[BatchCoordinate]],
        gap_bytes_max: int = GAP_BYTES_MAX,
    ) -> _Placed:
        """Every run; those that are not cached are read concurrently."""
        runs: dict[str, list[BatchCoordinate]] = {}
        for partition in partitions:
            for run in partition:
                runs.setdefault(run.extent.object_key, []).append(run)
        placed: _Placed = {}
        missing: list[Range] = []
        turn_bytes = 0
        for wanted in ranges_of(partitions, gap_bytes_max):
            held = self.objects.cached(wanted) or self.objects.read_now(wanted)
            if held is None:
                missing.append(wanted)
                continue
            _place(wanted, held, runs[wanted.key], placed)
            turn_bytes += wanted.end - wanted.start
            if turn_bytes >= TURN_BYTES:
                turn_bytes = 0
                await asyncio.sleep(0)
        reads = [self._read(wanted, runs[wanted.key], placed) for wanted in missing]
        for outcome in await asyncio.gather(*reads, return_exceptions=True) if reads else ():
            if outcome is not None:
                raise outcome
        return placed

    async def _read(self, wanted: Range, runs: Sequence[BatchCoordinate], placed: _Placed) -> None:
        """Read a range and place its batches at once, without waiting for other ranges: its bytes
        are in the CPU caches now."""
        try:
            held = await self.objects.read(wanted)
        except ObjectError as error:
            placed.update(dict.fromkeys(_within(wanted, runs), error))
        else:
            _place(wanted, held, runs, placed)

    async def _answer(
        self, found: FindResult, runs: Sequence[BatchCoordinate], placed: _Placed
    ) -> ReadResult:
        parts: list[Buffer] = []
        size, error = 0, found.error
        for run in runs:
            served = await self._serve(run, placed)
            parts += served.parts
            size += served.size
            if served.error is not None:
                # The valid beginning is served; the client gets the error with its next fetch.
                error = found.error if size else served.error.code
                break
        return ReadResult(error, parts, size, found.log_start_offset, found.high_watermark)

    async def _serve(self, run: BatchCoordinate, placed: _Placed) -> Served:
        """Its batches, up to the first invalid one."""
        served = placed[run]
        if isinstance(served, ObjectError):
            return self._missing(run, served)
        if served.error is not None:
            return await self._serve_again(run, served.error)
        return served

    async def _serve_again(self, run: BatchCoordinate, first: KafkaError) -> Served:
        """The bytes were invalid, perhaps only in memory or in transit. Read from the store
        again."""
        extent = run.extent
        self.objects.forget(extent.object_key)
        try:
            held = await self.objects.read(Range(extent.object_key, extent.byte_offset, extent.end))
        except ObjectError as error:
            return self._missing(run, error)
        served = _placed(run, held, sparse=True)
        if served.error is not None:
            self.stats.corrupt += 1
            _log.error("corrupt batch", key=extent.object_key, why=first.message)
        return served

    def _missing(self, run: BatchCoordinate, error: ObjectError) -> Served:
        self.stats.missing += 1
        _log.error("object not read", key=run.extent.object_key, why=str(error))
        served = Served(run)
        served.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        return served


def _within(wanted: Range, runs: Sequence[BatchCoordinate]) -> list[BatchCoordinate]:
    """The runs of an object that are within a range of it."""
    return [
        run
        for run in runs
        if wanted.start <= run.extent.byte_offset and run.extent.end <= wanted.end
    ]


def _place(
    wanted: Range, held: HeldObject, runs: Sequence[BatchCoordinate], placed: _Placed
) -> None:
    # A response that uses too little of an object does not keep it until the client has read it.
    sparse = sum(run.extent.byte_size for run in runs) * USED_SHARE < held.size
    for run in _within(wanted, runs):
        placed[run] = _placed(run, held, sparse=sparse)


def _placed(run: BatchCoordinate, held: HeldObject, *, sparse: bool) -> Served:
    start, end = run.extent.byte_offset, run.extent.end
    checked = held.is_checked(start, end)
    served = Served(run, checked=checked, copy=sparse, own=held.own)
    served.add_all(held.read(start, min(end, held.end)))  # it may be too short
    if not checked and served.error is None:
        held.note_checked(start, end)
    return served
