"""Reads ahead of consumers that read remote segments from one end to the other.

A read that begins where an earlier one ended belongs to the same reader. What comes next, in the
next segment too, is then fetched before it is asked for. All that was fetched and not read stays
below half of the chunk cache, shared by the readers; what waits too long for its reader is dropped,
for the reader has gone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from skylog.kernel.errors import KafkaError
from skylog.kernel.limits import (
    REMOTE_CHUNK_BYTES,
    REMOTE_READ_AHEAD_SECONDS_MAX,
    REMOTE_READERS_REMEMBERED_MAX,
)
from skylog.tiered.reading.chunks import ChunkCache, ChunkKey, keys_of, range_of
from skylog.tiered.reading.plan import segment_at

if TYPE_CHECKING:
    from skylog.kernel.clock import Clock
    from skylog.tiered.reading.needs import RemoteRead, Segments
    from skylog.tiered.segments import RemoteSegment, TopicIdPartition


class _Stream:
    """A consumer that reads on: its chunks that it has not come to, with their sizes."""

    __slots__ = ("ahead", "moved_at")

    def __init__(self) -> None:
        self.ahead: dict[ChunkKey, int] = {}
        self.moved_at = 0.0


class ReadAhead:
    """All calls come from the event loop."""

    def __init__(self, clock: Clock, bytes_max: int) -> None:
        self._clock = clock
        self.bytes_max = bytes_max
        self._streams: OrderedDict[tuple[TopicIdPartition, int], _Stream] = OrderedDict()
        self._owners: dict[ChunkKey, _Stream] = {}
        self._timer: asyncio.TimerHandle | None = None
        # Fetched or being fetched, and not read.
        self.bytes = 0
        self.fetched = 0

    def used(self, key: ChunkKey) -> None:
        """It was read, or it is gone."""
        owner = self._owners.pop(key, None)
        if owner is not None:
            self.bytes -= owner.ahead.pop(key)

    def moved(
        self,
        chunks: ChunkCache,
        remote: Segments,
        wanted: RemoteRead,
        reached: tuple[RemoteSegment, int, int],
    ) -> None:
        """A read of ``wanted`` reached this segment, position and next offset."""
        segment, position, next_offset = reached
        stream = self._streams.pop((wanted.partition, wanted.offset), None)
        goes_on = stream is not None
        if stream is None:
            stream = _Stream()
        stream.moved_at = self._clock.monotonic()
        replaced = self._streams.pop((wanted.partition, next_offset), None)
        if replaced is not None and replaced is not stream:
            self._adopt(stream, replaced)
        self._streams[wanted.partition, next_offset] = stream
        if len(self._streams) > REMOTE_READERS_REMEMBERED_MAX:
            self._drop(chunks, next(iter(self._streams)))
        if goes_on and self.bytes_max > 0:
            self._fetch(chunks, remote, wanted, stream, segment, position)
        if self._timer is None:
            self._watch(chunks)

    def _adopt(self, stream: _Stream, other: _Stream) -> None:
        """Two readers have met: from here on they are one."""
        for key, size in other.ahead.items():
            stream.ahead[key] = size
            self._owners[key] = stream

    def _fetch(
        self,
        chunks: ChunkCache,
        remote: Segments,
        wanted: RemoteRead,
        stream: _Stream,
        segment: RemoteSegment,
        position: int,
    ) -> None:
        half = chunks.bytes_max // 2
        share = half // max(sum(1 for one in self._streams.values() if one.ahead), 1)
        left = min(self.bytes_max, max(share, REMOTE_CHUNK_BYTES))
        following: RemoteSegment | None = segment
        while following is not None and left > 0:
            if position < following.size:
                end = min(position + left, following.size)
                for key in keys_of(following, position, end):
                    self._start(chunks, stream, following, key, half)
                left -= end - position
            following, position = _next(remote, wanted, following), 0

    def _start(
        self,
        chunks: ChunkCache,
        stream: _Stream,
        segment: RemoteSegment,
        key: ChunkKey,
        bytes_max: int,
    ) -> None:
        start, end = range_of(segment, key[1])
        if key in chunks or self.bytes + end - start > bytes_max:
            return
        self.bytes += end - start
        self.fetched += 1
        stream.ahead[key] = end - start
        self._owners[key] = stream
        chunks.fetch(segment, key)

    def _watch(self, chunks: ChunkCache) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(REMOTE_READ_AHEAD_SECONDS_MAX, self._sweep, chunks)

    def _sweep(self, chunks: ChunkCache) -> None:
        self._timer = None
        before = self._clock.monotonic() - REMOTE_READ_AHEAD_SECONDS_MAX
        for key, stream in tuple(self._streams.items()):
            if stream.moved_at <= before:
                self._drop(chunks, key)
        if self._streams:
            self._watch(chunks)

    def _drop(self, chunks: ChunkCache, key: tuple[TopicIdPartition, int]) -> None:
        stream = self._streams.pop(key)
        for chunk in tuple(stream.ahead):
            chunks.drop(chunk)
            self.used(chunk)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._streams.clear()


def _next(remote: Segments, wanted: RemoteRead, segment: RemoteSegment) -> RemoteSegment | None:
    """The segment that a reader comes to next, if it begins where this one ends."""
    offset = segment.end_offset + 1
    try:
        found = segment_at(remote, wanted, offset)
    except KafkaError:
        return None
    return found if found is not None and found.start_offset == offset else None
