"""Objects in memory: for tests, simulations and brokers without persistence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.kernel.clock import Clock, SystemClock
from skylog.objects.keys import ObjectKey, checked_prefix
from skylog.objects.sources import pieces
from skylog.objects.store import (
    Exists,
    NotFound,
    ObjectInfo,
    ObjectStore,
    Payload,
    Source,
    check_range,
    parts_of,
)

_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    modified_ms: int


class MemoryStore(ObjectStore):
    """A dictionary of objects. It has no fast paths, like the buckets that it stands for."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._objects: dict[ObjectKey, _Object] = {}

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        held = self._objects.get(key) if if_absent else None
        written = b"".join(parts_of(data))
        if held is None:
            self._objects[key] = _Object(written, self._clock.now_ms())
        elif held.data != written:
            raise Exists(f"{key} has other contents")

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        await self.put(key, b"".join(pieces(source, size, _PIECE_BYTES)))

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        held = self._find(key)
        first, stop = check_range(key, start, end, len(held.data))
        return held.data[first:stop]

    async def head(self, key: ObjectKey) -> ObjectInfo:
        held = self._find(key)
        return ObjectInfo(key, len(held.data), held.modified_ms)

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        for key in keys:
            self._objects.pop(key, None)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        checked_prefix(prefix)
        for key in sorted(self._objects):
            held = self._objects.get(key)  # it may have been deleted between two steps
            if held and key.text.startswith(prefix) and (after is None or key.text > after):
                yield ObjectInfo(key, len(held.data), held.modified_ms)

    async def close(self) -> None:
        """Keeps the objects: a test may open the same memory again."""

    def _find(self, key: ObjectKey) -> _Object:
        held = self._objects.get(key)
        if held is None:
            raise NotFound(f"{key} does not exist")
        return held
