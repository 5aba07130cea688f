"""Limits the number of concurrent requests to a store; the others wait in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from skylog.objects.keys import ObjectKey
from skylog.objects.store import AtHand, ObjectInfo, ObjectStore, Payload, Source


class LimitedStore(ObjectStore):
    """A store behind a semaphore."""

    def __init__(self, inner: ObjectStore, requests_max: int) -> None:
        self._inner = inner
        self._slots = asyncio.Semaphore(requests_max)

    @property
    def at_hand(self) -> AtHand | None:
        """Needs no slot: it completes before any other request can start."""
        return self._inner.at_hand

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        async with self._slots:
            await self._inner.put(key, data, if_absent=if_absent)

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        """Holds one slot: its parts are put one after the other."""
        async with self._slots:
            await self._inner.put_file(key, source, size)

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        async with self._slots:
            return await self._inner.get(key, start, end)

    async def head(self, key: ObjectKey) -> ObjectInfo:
        async with self._slots:
            return await self._inner.head(key)

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        async with self._slots:
            await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        """Holds a slot during the request, not while the caller processes its result."""
        found = self._inner.list(prefix, after)
        while True:
            async with self._slots:
                info = await anext(found, None)
            if info is None:
                return
            yield info

    async def close(self) -> None:
        await self._inner.close()
