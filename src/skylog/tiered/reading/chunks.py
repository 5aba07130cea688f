"""Chunks of remote segments in memory, apart from the cache of diskless topics.

A reader from far behind takes nothing from readers at the tail. Chunks are aligned, so that readers
of one segment share them, and each is fetched once however many wait for it. What a store has in
memory anyway is read from there by exact range, and not kept a second time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from skylog.kernel.ids import Uuid
from skylog.kernel.limits import REMOTE_CHUNK_BYTES
from skylog.kernel.waiting import end_tasks
from skylog.objects.store import ObjectError, Outcome
from skylog.tiered.reading.walk import Chunk

if TYPE_CHECKING:
    from skylog.tiered.ports import RemoteStorage, SegmentsAtHand
    from skylog.tiered.segments import RemoteSegment

# Segment and number of the chunk in it.
ChunkKey: TypeAlias = tuple[Uuid, int]


class ChunkCache:
    """All calls come from the event loop."""

    def __init__(
        self,
        storage: RemoteStorage,
        at_hand: SegmentsAtHand | None,
        bytes_max: int,
        on_gone: Callable[[ChunkKey], None],
    ) -> None:
        """``on_gone`` is called for each chunk that is dropped."""
        self._storage = storage
        self._at_hand = at_hand
        self.bytes_max = bytes_max
        self._on_gone = on_gone
        self._chunks: OrderedDict[ChunkKey, Chunk] = OrderedDict()
        self._under_way: dict[ChunkKey, asyncio.Task[Chunk]] = {}
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        # Reads of what the store had in memory.
        self.at_once = 0

    def __contains__(self, key: ChunkKey) -> bool:
        return key in self._chunks or key in self._under_way

    def __len__(self) -> int:
        return len(self._chunks)

    def now(self, segment: RemoteSegment, start: int, end: int) -> Sequence[Chunk] | None:
        """Chunks with the range, if nothing must be waited for."""
        found = self._cached(segment, start, end)
        if found is not None:
            self.hits += 1
            return found
        if self._at_hand is None:
            return None
        data = self._at_hand.fetch_now(segment, start, end)
        if data is None or len(data) != end - start:
            return None
        self.at_once += 1
        return (Chunk(data, start),)

    def _cached(self, segment: RemoteSegment, start: int, end: int) -> list[Chunk] | None:
        found = []
        for key in keys_of(segment, start, end):
            chunk = self._chunks.get(key)
            if chunk is None:
                return None
            self._chunks.move_to_end(key)
            found.append(chunk)
        return found

    async def get(self, segment: RemoteSegment, start: int, end: int) -> Sequence[Chunk]:
        """Chunks with the range; ObjectError if they cannot be read."""
        self.misses += 1
        wanted: list[Chunk | asyncio.Task[Chunk]] = []
        for key in keys_of(segment, start, end):
            chunk = self._chunks.get(key)
            wanted.append(chunk if chunk is not None else self.fetch(segment, key))
        return [one if isinstance(one, Chunk) else await asyncio.shield(one) for one in wanted]

    def fetch(self, segment: RemoteSegment, key: ChunkKey) -> asyncio.Task[Chunk]:
        """The one fetch of a chunk for all that wait for it; it goes on if they do not."""
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.ensure_future(self._fetch(segment, key))
            self._under_way[key] = task
            task.add_done_callback(_seen)
        return task

    async def _fetch(self, segment: RemoteSegment, key: ChunkKey) -> Chunk:
        start, end = range_of(segment, key[1])
        try:
            data = await self._storage.fetch(segment, start, end)
        except BaseException:
            self._on_gone(key)
            raise
        finally:
            del self._under_way[key]
        if len(data) != end - start:
            self._on_gone(key)
            raise ObjectError(
                f"{len(data)} bytes instead of {start}..{end} of segment {segment.id}",
                Outcome.NOT_DONE,
            )
        chunk = Chunk(data, start)
        self._keep(key, chunk)
        return chunk

    def _keep(self, key: ChunkKey, chunk: Chunk) -> None:
        size = chunk.end - chunk.start
        if size > self.bytes_max:
            self._on_gone(key)
            return
        self._chunks[key] = chunk
        self.bytes += size
        self.resize(self.bytes_max)

    def resize(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        while self.bytes > bytes_max:
            self.drop(next(iter(self._chunks)))

    def drop(self, key: ChunkKey) -> None:
        chunk = self._chunks.pop(key, None)
        if chunk is not None:
            self.bytes -= chunk.end - chunk.start
            self._on_gone(key)

    def forget(self, segment: RemoteSegment, start: int, end: int) -> None:
        """These bytes were wrong."""
        for key in keys_of(segment, start, min(end, segment.size)):
            self.drop(key)

    async def close(self) -> None:
        await end_tasks(self._under_way.values())
        self._chunks.clear()
        self.bytes = 0


def keys_of(segment: RemoteSegment, start: int, end: int) -> list[ChunkKey]:
    """The chunks that cover a range, which is not empty."""
    first, last = start // REMOTE_CHUNK_BYTES, (end - 1) // REMOTE_CHUNK_BYTES
    return [(segment.id, number) for number in range(first, last + 1)]


def range_of(segment: RemoteSegment, number: int) -> tuple[int, int]:
    start = number * REMOTE_CHUNK_BYTES
    return start, min(start + REMOTE_CHUNK_BYTES, segment.size)


def _seen(task: asyncio.Task[Chunk]) -> None:
    """Whoever waited for it has got the error; perhaps nobody has."""
    if not task.cancelled():
        task.exception()
