"""Windows of diskless topics, read from their objects: locate, plan requests, read ahead.

An object that is gone when it is read may have been replaced or deleted since it was located: the
batches are located again, and only if they still are where nothing is, the read fails. What a
broker locates in tiered segments and cannot be had from there, whatever the reason, is fetched
from brokers: they have other ways to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from skylog.bulk.decode import EncodedBatch
from skylog.bulk.extents import Extent, Part, Windows, extents_of, parts_of
from skylog.bulk.fetch import BrokerSource
from skylog.bulk.source import LossPolicy, Piece, WindowSource
from skylog.bulk.tiered import TieredReads
from skylog.bulk.verify import batches_in_object
from skylog.client.bulk import BatchLocation, Located, Region, Split, locate_batches, locate_many
from skylog.client.cluster import Cluster
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError, SkylogError, StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.logging import get_logger
from skylog.objects.keys import ObjectKey
from skylog.objects.store import NotFound, ObjectError, ObjectStore
from skylog.tiered.storage import DamagedSegment

_log = get_logger("bulk.reader")
# Windows that are read or wait while one is being decoded.
WINDOWS_AHEAD: Final = 2
# Splits that are located with one request: so many, or as many as have about so many bytes, for an
# answer has only so much room. And such requests that are under way while their answers are read.
SPLITS_PER_REQUEST: Final = 256
BYTES_PER_REQUEST: Final = 8 * 1024 * 1024
REQUESTS_AHEAD: Final = 2
READS_AT_ONCE: Final = 16
_ATTEMPTS_MAX: Final = 3

Wanted = Sequence[tuple[Split, int]]
Outcome = memoryview | ObjectError
# A split, what the first page about it locates, and the position behind that.
_Page = tuple[Split, tuple[list[Part], int]]


@dataclass(frozen=True, slots=True)
class BucketSettings:
    window_bytes: int
    min_timestamp: int
    loss: LossPolicy


class Stores(NamedTuple):
    wal: ObjectStore
    tiered: TieredReads


class Brokers(Protocol):
    """What is asked of them. Errors are ``KafkaError``."""

    async def locate(self, split: Split, position: int) -> Located:
        """A page of the batches from ``position`` on."""
        ...

    async def locate_many(self, wanted: Wanted) -> list[Located | KafkaError | None]:
        """The first pages of many, as far as one answer has room."""
        ...

    def fetch(self, split: Split) -> WindowSource:
        """Reads the split through brokers."""
        ...


class ClusterBrokers:
    def __init__(self, cluster: Cluster, executor: Executor, settings: BucketSettings) -> None:
        self._cluster = cluster
        self._executor = executor
        self._settings = settings

    async def locate(self, split: Split, position: int) -> Located:
        return await locate_batches(
            self._cluster,
            split,
            start_offset=position,
            min_timestamp=self._settings.min_timestamp,
        )

    async def locate_many(self, wanted: Wanted) -> list[Located | KafkaError | None]:
        return await locate_many(self._cluster, wanted, min_timestamp=self._settings.min_timestamp)

    def fetch(self, split: Split) -> WindowSource:
        return BrokerSource(self._cluster, self._executor, [split], self._settings.loss)


class BucketSource:
    """The windows of some splits, in their order. All calls come from the event loop."""

    def __init__(
        self,
        cluster: Cluster,
        stores: Stores,
        executor: Executor,
        splits: Sequence[Split],
        settings: BucketSettings,
        brokers: Brokers | None = None,
    ) -> None:
        self._cluster = cluster
        self._store = stores.wal
        self._tiered = stores.tiered
        self._at_hand = stores.wal.at_hand
        self._executor = executor
        self._splits = splits
        self._settings = settings
        self._brokers = brokers or ClusterBrokers(cluster, executor, settings)
        self._told = self._tiered_is_away = False
        self._slots = asyncio.Semaphore(READS_AT_ONCE)
        self._room = asyncio.Semaphore(WINDOWS_AHEAD)
        self._ready: asyncio.Queue[asyncio.Task[list[Piece]] | None] = asyncio.Queue()
        self._reading: set[asyncio.Task[list[Piece]]] = set()
        self._producer = asyncio.ensure_future(self._produce())

    async def next(self) -> list[Piece] | None:
        window = await self._ready.get()
        if window is None:
            self._ready.put_nowait(None)
            await self._producer  # raises what ended it early
            return None
        try:
            return await window
        finally:
            self._reading.discard(window)
            self._room.release()

    async def close(self) -> None:
        tasks = [self._producer, *self._reading]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _produce(self) -> None:
        try:
            async with aclosing(self._windows()) as windows:
                async for window in windows:
                    await self._room.acquire()
                    task = asyncio.ensure_future(self._read(window))
                    self._reading.add(task)
                    self._ready.put_nowait(task)
        finally:
            self._ready.put_nowait(None)

    # Locating -----------------------------------------------------------------------------

    async def _windows(self) -> AsyncGenerator[list[Part], None]:
        """Windows may span splits: neighbours in the objects are read together."""
        windows = Windows(self._settings.window_bytes)
        async with aclosing(self._parts()) as parts:
            async for part in parts:
                for window in windows.add(part):
                    yield window
        if windows.rest:
            yield windows.rest

    async def _parts(self) -> AsyncGenerator[Part, None]:
        """What the splits are made of, page by page; the first pages are asked for ahead."""
        ahead: deque[asyncio.Task[list[_Page]]] = deque()
        groups = _groups(self._splits)
        try:
            while True:
                while len(ahead) < REQUESTS_AHEAD and (group := next(groups, None)) is not None:
                    ahead.append(asyncio.ensure_future(self._first_pages(group)))
                if not ahead:
                    return
                for split, (first, position) in await ahead.popleft():
                    for part in first:
                        yield part
                    async with aclosing(self._later_pages(split, position)) as later:
                        async for part in later:
                            yield part
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _later_pages(self, split: Split, position: int) -> AsyncGenerator[Part, None]:
        while position < split.end_offset:
            parts, position = await self._locate(split, position)
            for part in parts:
                yield part

    async def _first_pages(self, splits: Sequence[Split]) -> list[_Page]:
        """With one request, if nothing is in the way; for each split alone where something is."""
        wanted = [(split, split.start_offset) for split in splits]
        found: Sequence[Located | KafkaError | None] = [None]
        if len(wanted) > 1:
            try:
                found = await self._brokers.locate_many(wanted)
            except KafkaError:
                found = [None] * len(wanted)
        return [
            (
                split,
                self._page(split, position, one)
                if isinstance(one, Located)
                else await self._locate(split, position),
            )
            for (split, position), one in zip(wanted, found, strict=True)
        ]

    async def _locate(self, split: Split, position: int) -> tuple[list[Part], int]:
        """A page of batches from ``position`` on, and the position after it."""
        while position < split.end_offset:
            try:
                found = await self._brokers.locate(split, position)
            except KafkaError as error:
                position = await self._settings.loss.position_after_loss(
                    self._cluster, split, position, error
                )
                continue
            return self._page(split, position, found)
        return [], split.end_offset

    def _page(self, split: Split, position: int, found: Located) -> tuple[list[Part], int]:
        after = self._settings.loss.position_at_log_start(split, position, found.log_start_offset)
        if not position < found.next_offset <= split.end_offset:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{split.topic}-{split.partition}: batches located from {position}"
                f" to {found.next_offset}",
            )
        parts = list(parts_of(replace(split, start_offset=after), found))
        if self._settings.min_timestamp < 0:
            self._require_all(split, after, found.next_offset, parts)
        return parts, found.next_offset

    def _require_all(self, split: Split, start: int, end: int, parts: Sequence[Part]) -> None:
        """A diskless partition has no gaps: offsets that nobody locates are lost."""
        for part in parts:
            for batch in part.batches:
                if batch.base_offset > start:
                    self._settings.loss.lost(split, start, batch.base_offset, "nowhere located")
                start = batch.last_offset + 1
        if start < end:
            self._settings.loss.lost(split, start, end, "nowhere located")

    # Reading ------------------------------------------------------------------------------

    async def _read(self, window: Sequence[Part], attempt: int = 1) -> list[Piece]:
        """All batches of a window; those whose object is gone are located again."""
        in_wal = [batch for part in window if part.in_wal for batch in part.batches]
        elsewhere = [part for part in window if not part.in_wal]
        data, tiered = await asyncio.gather(
            self._read_extents(in_wal),
            asyncio.gather(*(self._read_tiered(part, attempt) for part in elsewhere)),
        )
        pieces: list[Piece] = []
        at, of_others = 0, iter(tiered)
        for part in window:
            if not part.in_wal:
                pieces += next(of_others)
                continue
            found = data[at : at + len(part.batches)]
            at += len(part.batches)
            pieces += await self._pieces(part, found, attempt)
        return pieces

    async def _read_tiered(self, part: Part, attempt: int) -> list[Piece]:
        """A range of a tiered segment; from brokers if it cannot be had, or is to be had there."""
        (location,) = part.batches
        if location.region is Region.TIERED and not self._tiered_is_away:
            try:
                async with self._slots:
                    batches = await self._tiered.read(part.split, location, part.tiered_url)
                return [Piece(part.split, batches, sum(len(one.data) for one in batches))]
            except NotFound as error:
                if attempt < _ATTEMPTS_MAX:
                    return await self._locate_and_read(part, attempt + 1)
                self._tell(error)
            except (KafkaError, DamagedSegment) as error:
                if attempt < _ATTEMPTS_MAX:
                    return await self._read_tiered(part, _ATTEMPTS_MAX)
                self._tell(error)
            except (ObjectError, ConfigError) as error:
                # It has been tried long enough, and the next one would fare no better.
                self._tiered_is_away = True
                self._tell(error)
        source = self._brokers.fetch(part.split)
        pieces: list[Piece] = []
        try:
            while (window := await source.next()) is not None:
                pieces += window
        finally:
            await source.close()
        return pieces

    def _tell(self, error: SkylogError) -> None:
        """Once: this takes the brokers' time, but every row comes."""
        if not self._told:
            self._told = True
            _log.warning("tiered segments are read through the brokers", why=str(error))

    async def _pieces(self, part: Part, data: Sequence[Outcome], attempt: int) -> list[Piece]:
        failed = [
            (batch, outcome)
            for batch, outcome in zip(part.batches, data, strict=True)
            if isinstance(outcome, ObjectError)
        ]
        for batch, error in failed:
            if not isinstance(error, NotFound) or attempt == _ATTEMPTS_MAX:
                raise _unreadable(part.split, batch, error)
        if failed:
            return await self._locate_and_read(part, attempt + 1)
        try:
            batches = await self._executor.run(lambda: _verified(part, data))
        except KafkaError:
            if attempt == _ATTEMPTS_MAX:
                raise
            # Perhaps wrong only in memory or on the way: ask for them once more.
            return await self._read([part], _ATTEMPTS_MAX)
        return [Piece(part.split, batches, part.bytes)]

    async def _locate_and_read(self, part: Part, attempt: int) -> list[Piece]:
        start = max(part.split.start_offset, part.batches[0].base_offset)
        end = min(part.split.end_offset, part.batches[-1].last_offset + 1)
        split, position = replace(part.split, start_offset=start, end_offset=end), start
        pieces: list[Piece] = []
        while position < end:
            moved, position = await self._locate(split, position)
            pieces += await self._read(moved, attempt)
        return pieces

    async def _read_extents(self, batches: Sequence[BatchLocation]) -> list[Outcome]:
        """The bytes of each batch, or why they cannot be had."""
        extents = extents_of(batches)
        at_hand = [self._get_now(extent) for extent in extents]
        missing = [extent for extent, data in zip(extents, at_hand, strict=True) if data is None]
        late = iter(await asyncio.gather(*(self._get(extent) for extent in missing)))
        read = [next(late) if data is None else data for data in at_hand]
        found: dict[int, Outcome] = {}
        for extent, outcome in zip(extents, read, strict=True):
            for place in extent.places:
                begin = batches[place].byte_offset - extent.start
                found[place] = (
                    outcome
                    if isinstance(outcome, ObjectError)
                    else memoryview(outcome)[begin : begin + batches[place].byte_size]
                )
        return [found[place] for place in range(len(batches))]

    def _get_now(self, extent: Extent) -> bytearray | None:
        """From this machine's page cache: a thread for each read would take several times as long
        as copying, because the decoder and the threads would wait for each other."""
        if self._at_hand is None:
            return None
        return self._at_hand.get_now(ObjectKey.parse(extent.key), extent.start, extent.end)

    async def _get(self, extent: Extent) -> bytes | ObjectError:
        async with self._slots:
            try:
                return await self._store.get(ObjectKey.parse(extent.key), extent.start, extent.end)
            except ObjectError as error:
                return error


def _groups(splits: Sequence[Split]) -> Iterator[list[Split]]:
    """Splits whose first pages come with one answer."""
    group: list[Split] = []
    size = 0
    for split in splits:
        if group and (len(group) == SPLITS_PER_REQUEST or size + split.bytes > BYTES_PER_REQUEST):
            yield group
            group, size = [], 0
        group.append(split)
        size += split.bytes
    if group:
        yield group


def _verified(part: Part, data: Sequence[Outcome]) -> list[EncodedBatch]:
    return [
        batch
        for location, found in zip(part.batches, data, strict=True)
        if not isinstance(found, ObjectError)
        for batch in batches_in_object(part.split, location, found)
    ]


def _unreadable(split: Split, batch: BatchLocation, error: ObjectError) -> StorageError:
    return StorageError(
        f"topic {split.topic} partition {split.partition} offset {batch.base_offset}:"
        f" cannot read {batch.object_key}: {error}"
    )
