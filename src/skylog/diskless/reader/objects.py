"""Reads ranges of objects: from the cache, or from the store with concurrent reads shared.

What a store has in memory is read by range, each time. Other recent objects are read whole and
cached: the next reader of the tail will need the rest. Old ones are read by range, bypass the cache
and get fewer slots, so that a lagging reader does not slow down those at the tail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from skylog.diskless.reader.cache import HeldObject, ObjectCache
from skylog.diskless.reader.plan import Range
from skylog.kernel.clock import Clock
from skylog.kernel.stages import Stage
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectStore


@dataclass(frozen=True, slots=True)
class ObjectReaderSettings:
    concurrency: int = 32
    lagging_concurrency: int = 16
    # Objects older than this are not cached.
    recent_ms: int = 60_000
    # A slower read is sent a second time; 0: never.
    hedge_ms: int = 0


class ObjectReader:
    """All calls come from the event loop."""

    def __init__(
        self, store: ObjectStore, cache: ObjectCache, clock: Clock, settings: ObjectReaderSettings
    ) -> None:
        self._store = store
        self._at_hand = store.at_hand
        self.cache = cache
        self._clock = clock
        self._settings = settings
        self._recent = asyncio.Semaphore(settings.concurrency)
        self._lagging = asyncio.Semaphore(settings.lagging_concurrency)
        self._under_way: dict[Range, asyncio.Task[HeldObject]] = {}
        # Reads from memory; an error is an object with invalid bytes.
        self.cache_stage = Stage(clock, timed=False)
        self.gets = 0
        self.gets_at_once = 0
        self.hedged = 0

    def cached(self, wanted: Range) -> HeldObject | None:
        found = self.cache.get(wanted.key, wanted.start, wanted.end)
        if found is not None:
            self.cache_stage.succeeded(self.cache_stage.begin())
        return found

    def forget(self, key: str) -> None:
        """Its bytes were invalid."""
        if self.cache.forget(key):
            self.cache_stage.failed(self.cache_stage.begin())

    def read_now(self, wanted: Range) -> HeldObject | None:
        """The bytes of a range, if the store has them in memory. They are not cached: the store
        keeps them, and reused memory is then still in the CPU caches."""
        if self._at_hand is None:
            return None
        data = self._at_hand.get_now(ObjectKey.parse(wanted.key), wanted.start, wanted.end)
        if data is None:
            return None
        self.gets_at_once += 1
        return HeldObject([data], wanted.start, own=True)

    async def read(self, wanted: Range) -> HeldObject:
        """An object with the bytes of a range; ObjectError if they cannot be read."""
        key = ObjectKey.parse(wanted.key)
        age_ms = self._clock.now_ms() - (key.created_ms or 0)
        if age_ms > self._settings.recent_ms:
            return await self._shared(wanted, self._lagging, self._get_range)
        whole = Range(wanted.key, 0, -1)
        return await self._shared(whole, self._recent, self._get_whole)

    async def _shared(
        self,
        wanted: Range,
        slots: asyncio.Semaphore,
        get: Callable[[Range], Awaitable[HeldObject]],
    ) -> HeldObject:
        """One read for all callers that need the same; cancelling one does not affect the
        others."""
        task = self._under_way.get(wanted)
        if task is None:
            task = asyncio.ensure_future(self._limited(wanted, slots, get))
            self._under_way[wanted] = task
            task.add_done_callback(lambda _: self._under_way.pop(wanted, None))
        return await asyncio.shield(task)

    async def _limited(
        self,
        wanted: Range,
        slots: asyncio.Semaphore,
        get: Callable[[Range], Awaitable[HeldObject]],
    ) -> HeldObject:
        async with slots:
            if self._settings.hedge_ms <= 0:
                return await get(wanted)
            return await self._hedge(lambda: get(wanted))

    async def _hedge(self, get: Callable[[], Awaitable[HeldObject]]) -> HeldObject:
        first = asyncio.ensure_future(get())
        done, _ = await asyncio.wait({first}, timeout=self._settings.hedge_ms / 1000)
        if done:
            return first.result()
        self.hedged += 1
        attempts = {first, asyncio.ensure_future(get())}
        try:
            while True:
                done, pending = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
                good = [task for task in done if task.exception() is None]
                if good:
                    return good[0].result()
                if not pending:
                    return done.pop().result()
                attempts = pending
        finally:
            for task in attempts:
                task.cancel()

    async def _get_range(self, wanted: Range) -> HeldObject:
        self.gets += 1
        key = ObjectKey.parse(wanted.key)
        data = await self._store.get(key, wanted.start, wanted.end)
        return HeldObject([data], wanted.start)

    async def _get_whole(self, wanted: Range) -> HeldObject:
        self.gets += 1
        held = HeldObject([await self._store.get(ObjectKey.parse(wanted.key))])
        self.cache.keep(wanted.key, held)
        return held
