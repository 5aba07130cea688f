"""Where bulk readers find diskless partitions that are tiered: segments first, WAL objects behind.

What is in both is read from segments: they are few and large, and no prune takes them away while a
plan is carried out. The coordinator alone knows where a log starts, and below which offset its
batches are no longer in WAL objects; what it no longer has there must be in a segment, so one that
this broker does not know yet is waited for, never passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from skylog.broker.tiered.diskless_reads import EPOCHS, MOVED_SECONDS_MAX
from skylog.client.bulk import Region
from skylog.diskless.bulk import LocatedRange, PlannedRange, RangeRequest
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.diskless.rules import ranges
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import BULK_PLANNED_BATCHES_PER_CALL, BULK_SPLITS_MAX
from skylog.tiered.layout.chunks import BadManifest
from skylog.tiered.reading.locating import RangeFound, RangeWanted
from skylog.tiered.reading.pieces import pieces_of
from skylog.tiered.segments import TopicIdPartition

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.tiered.prefixes import TieredPrefixes
    from skylog.diskless.plane import LogInfo, TopicPartition
    from skylog.tiered.layout.plan import Layout
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.reading.locating import Extent
    from skylog.tiered.reading.reader import RemoteReader

# Splits are made of whole pieces, as they are of whole batches elsewhere.
_PIECES_PER_SPLIT: Final = 4
# Pieces and segments of one page of a plan: other requests get a turn after it.
_PIECES_PER_PAGE: Final = 2_000
_SEGMENTS_PER_PAGE: Final = 500
_LOCATED_AT_ONCE: Final = 4
_MOVED: Final = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
_NOT_YET: Final = ErrorCode.REPLICA_NOT_AVAILABLE


@dataclass(frozen=True, slots=True)
class TieredRange:
    """Like a ``LocatedRange``: ``extents`` come before its batches."""

    wal: LocatedRange
    extents: Sequence[Extent] = ()


class TieredRanges:
    """All calls come from the event loop."""

    def __init__(
        self,
        engine: DisklessEngine,
        prefixes: TieredPrefixes,
        reader: RemoteReader,
        layout: Layout,
        url: str,
    ) -> None:
        self._engine = engine
        self._prefixes = prefixes
        self._reader = reader
        self._layout = layout
        # The address of the segments' store, for clients.
        self.url = url
        # Indexes come from the store, and consumers read there, too.
        self._turns = asyncio.Semaphore(_LOCATED_AT_ONCE)

    def byte_size(self, place: TopicPartition) -> int:
        """Of all segments that are known here, even if the WAL has the same."""
        remote = self._prefixes.known(TopicIdPartition(*place))
        return 0 if remote is None else remote.finished_bytes

    def key_of(self, extent: Extent) -> str | None:
        """The object that has it; None if only this broker's settings say where that is."""
        segment = extent.segment
        try:
            key = self._layout.log_key(segment)
        except BadManifest:
            return None
        name = key.segment
        mine = (*segment.partition, segment.start_offset, segment.id)
        return key.text if name is not None and name[1:5] == mine else None

    # -- plans ---------------------------------------------------------------------------------

    async def plan(self, asked: Sequence[RangeRequest], split_bytes: int) -> list[PlannedRange]:
        """A page for each range, as ``BulkPlane.plan_ranges``."""
        found = await self._plan_wal(self._not_tiered(asked), split_bytes)
        tiered = [
            place
            for place in range(len(asked))
            if place not in found or found[place].error is _MOVED
        ]
        infos = await self._infos([asked[place] for place in tiered])
        of_wal: dict[int, RangeRequest] = {}
        for place, info in zip(tiered, infos, strict=True):
            begun = await self._begin(asked[place], info)
            if isinstance(begun, ErrorCode):
                found[place] = _without_splits(begun, info)
            elif begun.is_empty:
                found[place] = replace(
                    _without_splits(ErrorCode.NONE, info), next_offset=0, end_offset=0
                )
            elif begun.remote is None:
                of_wal[place] = begun.request
            else:
                found[place] = _page(begun.span, begun.remote, info, split_bytes)
        found |= await self._plan_wal(of_wal, split_bytes)
        return [_settled(found[place]) for place in range(len(asked))]

    async def _plan_wal(
        self, asked: dict[int, RangeRequest], split_bytes: int
    ) -> dict[int, PlannedRange]:
        if not asked:
            return {}
        results = await self._engine.plane.plan_ranges(
            list(asked.values()), split_bytes, BULK_PLANNED_BATCHES_PER_CALL
        )
        return {
            place: replace(result, error=_MOVED) if ranges.lacks_tiered(one, result) else result
            for (place, one), result in zip(asked.items(), results, strict=True)
        }

    # -- locations -----------------------------------------------------------------------------

    async def locate(self, asked: Sequence[RangeRequest], max_batches: int) -> list[TieredRange]:
        """As ``BulkPlane.locate_batches``; an extent counts as a batch."""
        found: dict[int, TieredRange] = {}
        of_wal = self._not_tiered(asked)
        tiered = [place for place in range(len(asked)) if place not in of_wal]
        left = max_batches
        while True:
            infos = await self._infos([asked[place] for place in tiered])
            begun = (
                self._segments(asked[place], info, left)
                for place, info in zip(tiered, infos, strict=True)
            )
            for place, (one, rest) in zip(tiered, await asyncio.gather(*begun), strict=True):
                found[place] = one if len(one.extents) <= left else _cut(one, left)
                left -= len(found[place].extents)
                if rest is not None and found[place] is one:
                    of_wal[place] = rest
            left -= await self._locate_wal(of_wal, found, left)
            # Not known to be tiered, but the coordinator says so: once more.
            moved = [place for place, one in found.items() if one.wal.error is _MOVED]
            tiered, of_wal = [place for place in moved if place not in tiered], {}
            if not tiered:
                return [_settled_range(one, found[place]) for place, one in enumerate(asked)]

    async def _segments(
        self, asked: RangeRequest, info: LogInfo, room: int
    ) -> tuple[TieredRange, RangeRequest | None]:
        """What is in segments, and what is left for the WAL."""
        begun = await self._begin(asked, info)
        if isinstance(begun, ErrorCode):
            return TieredRange(_located(begun, info)), None
        span = begun.span
        nothing = TieredRange(_located(ErrorCode.NONE, info, span.start, span.end))
        if begun.is_empty or room <= 0:
            return nothing, None
        if begun.remote is None:
            return nothing, begun.request
        wanted = RangeWanted(span.start, span.end, span.min_timestamp, room, EPOCHS)
        try:
            async with self._turns:
                found = self._reader.locate(_key(asked), wanted)
                if isinstance(found, Awaitable):
                    found = await found
        except KafkaError as error:
            if span.start >= info.wal_start_offset:
                found = RangeFound((), span.start)
            else:
                code = _NOT_YET if error.code is _NOT_YET else ErrorCode.KAFKA_STORAGE_ERROR
                return TieredRange(_located(code, info)), None
        located = _located(ErrorCode.NONE, info, found.next_offset, span.end)
        rest = None
        if not found.has_more and found.next_offset < span.end:
            rest = replace(begun.request, start_offset=found.next_offset)
        return TieredRange(located, found.extents), rest

    async def _locate_wal(
        self, asked: dict[int, RangeRequest], found: dict[int, TieredRange], room: int
    ) -> int:
        """Adds the batches of the WAL to what is found; returns how many they are."""
        asked = {at: one for at, one in asked.items() if room > 0 or at not in found}
        if not asked:
            return 0
        async with self._engine.bulk.locating:
            results = await self._engine.plane.locate_batches(list(asked.values()), max(room, 1))
        for place, result in zip(asked, results, strict=True):
            before = found.get(place)
            if before is None or not (before.extents and result.error):
                # Else the reader comes back for the rest.
                found[place] = TieredRange(result, before.extents if before else ())
        return sum(len(result.batches) for result in results)

    # -- what both share -----------------------------------------------------------------------

    async def _begin(self, asked: RangeRequest, info: LogInfo) -> _Begun | ErrorCode:
        """Whether a range begins in a segment, or in the WAL."""
        if info.error:
            return info.error
        log = LogState(info.log_start_offset, info.high_watermark)
        if asked.wal_only:
            log = log._replace(log_start_offset=info.wal_start_offset)
            asked = replace(asked, start_offset=max(asked.start_offset, info.wal_start_offset))
        error, span = ranges.span_of(asked, log)
        if error:
            return error
        request = replace(asked, start_offset=span.start, end_offset=span.end)
        if asked.wal_only or span.start >= span.end:
            return _Begun(request, span, None)
        remote = self._known(asked)
        if remote is None or not _has(remote, span.start):
            if span.start >= info.wal_start_offset:
                return _Begun(request, span, None)
            try:
                remote = await self._prefixes.reaching(
                    _key(asked), lambda known: _has(known, span.start), MOVED_SECONDS_MAX
                )
            except KafkaError:
                remote = None  # another partition of the request may fare better
            if remote is None:
                return _NOT_YET
        return _Begun(request, span, remote)

    async def _infos(self, asked: Sequence[RangeRequest]) -> list[LogInfo]:
        if not asked:
            return []
        return await self._engine.plane.log_info([one.topic_partition for one in asked])

    def _not_tiered(self, asked: Sequence[RangeRequest]) -> dict[int, RangeRequest]:
        """By place: those of which this broker knows no segment."""
        return {
            place: one
            for place, one in enumerate(asked)
            if not one.wal_only and self._known(one) is None
        }

    def _known(self, asked: RangeRequest) -> RemoteLog | None:
        """None also if there is no segment yet: then one question to the coordinator will do."""
        return self._prefixes.known(_key(asked)) or None


@dataclass(frozen=True, slots=True)
class _Begun:
    """A range with its bounds; ``remote`` if it begins in one of its segments."""

    request: RangeRequest
    span: ranges.Span
    remote: RemoteLog | None

    @property
    def is_empty(self) -> bool:
        """Nothing is in it, wherever it is."""
        return self.span.start >= self.span.end


def _key(asked: RangeRequest) -> TopicIdPartition:
    return TopicIdPartition(asked.topic_id, asked.partition)


def _has(remote: RemoteLog, offset: int) -> bool:
    return remote.segment_for(SERVED_EPOCH, offset) is not None


def _page(span: ranges.Span, remote: RemoteLog, info: LogInfo, split_bytes: int) -> PlannedRange:
    """Some segments from the start of a range on, cut by bytes."""
    split_bytes = max(split_bytes, remote.finished_bytes // BULK_SPLITS_MAX)
    pieces: list[ranges.SizedBatch] = []
    offset = span.start
    for _ in range(_SEGMENTS_PER_PAGE):
        segment = remote.segment_for(SERVED_EPOCH, offset)
        if segment is None or offset >= span.end or len(pieces) >= _PIECES_PER_PAGE:
            break
        until = min(segment.end_offset + 1, span.end)
        parts = pieces_of(segment, offset, until, max(split_bytes // _PIECES_PER_SPLIT, 1))
        pieces += (ranges.SizedBatch(*piece) for piece in islice(parts, _PIECES_PER_PAGE))
        offset = pieces[-1].last_offset + 1
    page = ranges.split_page(pieces, span, split_bytes)
    return PlannedRange(
        ErrorCode.NONE,
        [split._replace(region=Region.TIERED) for split in page.splits],
        next_offset=offset,
        end_offset=span.end,
        skipped_bytes=page.skipped_bytes,
        log_start_offset=info.log_start_offset,
        high_watermark=info.high_watermark,
    )


def _without_splits(error: ErrorCode, info: LogInfo) -> PlannedRange:
    return PlannedRange(
        error, log_start_offset=info.log_start_offset, high_watermark=info.high_watermark
    )


def _located(error: ErrorCode, info: LogInfo, next_offset: int = -1, end: int = -1) -> LocatedRange:
    return LocatedRange(
        error,
        next_offset=next_offset,
        end_offset=end,
        log_start_offset=info.log_start_offset,
        high_watermark=info.high_watermark,
        wal_start_offset=info.wal_start_offset,
    )


def _cut(found: TieredRange, room: int) -> TieredRange:
    """As many extents as an answer has room for; the reader comes back for the others."""
    behind = found.extents[room].base_offset
    return TieredRange(replace(found.wal, next_offset=behind), found.extents[:room])


def _settled(found: PlannedRange) -> PlannedRange:
    """Pruned since it was asked for: the reader asks again, and gets segments."""
    return replace(found, error=_NOT_YET) if found.error is _MOVED else found


def _settled_range(asked: RangeRequest, found: TieredRange) -> TieredRange:
    if found.wal.error is _MOVED:
        return replace(found, wal=replace(found.wal, error=_NOT_YET))
    if asked.wal_only and not found.wal.error:
        # For its reader the log begins there: what was pruned since it was planned is no gap.
        start = found.wal.wal_start_offset
        return replace(found, wal=replace(found.wal, log_start_offset=start))
    return found
