"""ListOffsets of diskless partitions whose older records are in tiered segments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from skylog.broker.partitions.diskless_errors import read_error, tiered_error
from skylog.broker.partitions.port import Found
from skylog.broker.tiered.diskless_reads import EPOCHS
from skylog.diskless.plane import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    ListOffsetsResult,
)
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.reading.needs import FoundRecord, TimeSearch
from skylog.tiered.reading.searching import candidates
from skylog.tiered.segments import TopicIdPartition

if TYPE_CHECKING:
    from skylog.broker.tiered.prefixes import TieredPrefixes
    from skylog.broker.tiered.reads import RemoteReads
    from skylog.diskless.plane import ControlPlane
    from skylog.tiered.reading.reader import RemoteReader

# The record that a plane's result is about.
Exact: TypeAlias = Callable[[TopicIdPartition, int, ListOffsetsResult], Awaitable[Found]]
_NOTHING: Final = Found()
_ANY_TIME: Final = -(2**63)
# How many segments are searched for the latest record, if records of earlier ones were deleted.
SEARCHED_SEGMENTS_MAX: Final = 8


class OffsetWanted(NamedTuple):
    """``timeout_ms``: 0 is the broker's limit."""

    place: TopicIdPartition
    timestamp: int
    timeout_ms: int


class _Bounds(NamedTuple):
    """Of a log: records below ``wal_start`` are in tiered segments only."""

    log_start: int
    wal_start: int
    high_watermark: int

    @property
    def has_prefix(self) -> bool:
        return self.log_start < self.wal_start


class TieredOffsets:
    """All calls come from the event loop."""

    def __init__(
        self,
        plane: ControlPlane,
        prefixes: TieredPrefixes,
        reader: RemoteReader,
        reads: RemoteReads,
    ) -> None:
        self._plane = plane
        self._prefixes = prefixes
        self._reader = reader
        self._reads = reads

    async def list_offsets(
        self, asked: Sequence[OffsetWanted], exact: Exact
    ) -> list[Found | KafkaError]:
        """The WAL is searched first, and where it begins is asked for afterwards: what is pruned
        meanwhile is found by both searches, and never by none."""
        try:
            in_wal = await self._plane.list_offsets([(*one.place, one.timestamp) for one in asked])
            bounds = await self._bounds([one.place for one in asked])
        except KafkaError as error:
            return [read_error(error.code)] * len(asked)
        searches: list[Found | KafkaError | Awaitable[Found]] = [
            self._search(one, result, bound, exact)
            for one, result, bound in zip(asked, in_wal, bounds, strict=True)
        ]
        found = await self._reads.within_time(searches, asked[0].timeout_ms)
        return [tiered_error(one.code) if isinstance(one, KafkaError) else one for one in found]

    async def _bounds(self, places: Sequence[TopicIdPartition]) -> list[_Bounds | KafkaError]:
        kinds = (EARLIEST, EARLIEST_LOCAL, LATEST)
        wanted = [(*place, kind) for place in places for kind in kinds]
        found = await self._plane.list_offsets(wanted)
        bounds: list[_Bounds | KafkaError] = []
        for at in range(0, len(found), len(kinds)):
            some = found[at : at + len(kinds)]
            failed = [one.error for one in some if one.error is not ErrorCode.NONE]
            bounds.append(
                KafkaError(failed[0]) if failed else _Bounds(*(one.offset for one in some))
            )
        return bounds

    async def _search(
        self,
        wanted: OffsetWanted,
        in_wal: ListOffsetsResult,
        bounds: _Bounds | KafkaError,
        exact: Exact,
    ) -> Found:
        place, timestamp, _ = wanted
        if isinstance(bounds, KafkaError):
            raise bounds
        if in_wal.error is not ErrorCode.NONE:
            raise KafkaError(in_wal.error)
        if MAX_TIMESTAMP != timestamp < 0:
            return _named(timestamp, await self._prefixes.learn(place), bounds)
        if not bounds.has_prefix:
            return await exact(place, timestamp, in_wal)
        remote = await self._covering(place, bounds)
        if timestamp != MAX_TIMESTAMP:
            tiered = await self._first_at(place, timestamp, bounds)
            return Found(*tiered) if tiered else await exact(place, timestamp, in_wal)
        latest = await exact(place, timestamp, in_wal)
        tiered = await self._latest(place, remote, bounds)
        if tiered is None:
            return latest
        # Of two that are as late, the first.
        return Found(*tiered) if tiered.timestamp >= latest.timestamp else latest

    async def _covering(self, place: TopicIdPartition, bounds: _Bounds) -> RemoteLog:
        """The remote log once it has everything that the WAL does not have."""
        known = self._prefixes.known(place)
        if known is not None and _covered_end(known, bounds) >= bounds.wal_start:
            return known
        seconds = self._reads.search_seconds
        found = await self._prefixes.reaching(
            place, lambda remote: _covered_end(remote, bounds) >= bounds.wal_start, seconds
        )
        if found is None:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, f"not all segments of {place} are known here"
            )
        return found

    async def _first_at(
        self, place: TopicIdPartition, timestamp: int, bounds: _Bounds
    ) -> FoundRecord | None:
        search = TimeSearch(timestamp, bounds.log_start, bounds.wal_start, EPOCHS)
        found = self._reader.find_timestamp(place, search)
        if found is None or isinstance(found, FoundRecord):
            return found
        return await found

    async def _latest(
        self, place: TopicIdPartition, remote: RemoteLog, bounds: _Bounds
    ) -> FoundRecord | None:
        segments = candidates(
            remote, TimeSearch(_ANY_TIME, bounds.log_start, bounds.wal_start, EPOCHS)
        )
        times = sorted({one.max_timestamp_ms for one in segments}, reverse=True)
        for timestamp in times[:SEARCHED_SEGMENTS_MAX]:
            found = await self._first_at(place, timestamp, bounds)
            if found is not None:
                return found
        return None


def _named(timestamp: int, remote: RemoteLog, bounds: _Bounds) -> Found:
    """As on classic topics: what was copied last, and what is to be copied next."""
    end = _covered_end(remote, bounds)
    if timestamp != LATEST_TIERED:
        return Found(-1, end, SERVED_EPOCH)
    if end > bounds.log_start:
        return Found(-1, end - 1, SERVED_EPOCH)
    # Everything that was ever copied is deleted.
    highest = remote.highest_offset(SERVED_EPOCH)
    return _NOTHING if highest is None else Found(-1, highest, SERVED_EPOCH)


def _covered_end(remote: RemoteLog, bounds: _Bounds) -> int:
    return remote.covered_end(bounds.log_start, Lineage(EPOCHS, bounds.high_watermark))
