"""A store that fails on purpose, the same way for the same seed: for tests and simulations.

Rates are probabilities per operation. Truncated and corrupted reads are returned without an error:
the reader must detect them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from skylog.kernel.rng import Random
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError, ObjectInfo, ObjectStore, Outcome, Payload, Source

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The kinds of faults and their rates. By default there are none."""

    before: float = 0.0  # an error, without effect
    unclear: float = 0.0  # an ambiguous error, without effect
    after: float = 0.0  # an ambiguous error, with effect
    refused: float = 0.0
    throttled: float = 0.0
    latency: float = 0.0
    latency_seconds_max: float = 0.2
    stall: float = 0.0
    stall_seconds: float = 30.0
    truncated: float = 0.0  # a read that ends early
    corrupted: float = 0.0  # a read with one bit flipped
    partial_delete: float = 0.0  # some keys deleted, then an ambiguous error


class FaultyStore(ObjectStore):
    """``inner`` with random faults from ``rng``. ``down`` makes every operation fail.

    There are no fast paths: every operation may fail.
    """

    def __init__(
        self,
        inner: ObjectStore,
        rng: Random,
        faults: Faults | None = None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._rng = rng
        self._sleep = sleep
        self.faults = faults or Faults()
        self.down = False
        self.injected: Counter[str] = Counter()

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        await self._around(
            f"put {key}", lambda: self._inner.put(key, data, if_absent=if_absent), writes=True
        )

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        await self._around(
            f"put {key}", lambda: self._inner.put_file(key, source, size), writes=True
        )

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        data = await self._around(f"get {key}", lambda: self._inner.get(key, start, end))
        if data and self._hit("truncated"):
            return data[: self._rng.randrange(len(data))]
        if data and self._hit("corrupted"):
            bit = self._rng.randrange(len(data) * 8)
            turned = bytearray(data)
            turned[bit // 8] ^= 1 << bit % 8
            return bytes(turned)
        return data

    async def head(self, key: ObjectKey) -> ObjectInfo:
        return await self._around(f"head {key}", lambda: self._inner.head(key))

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        if keys and self._hit("partial_delete"):
            await self._inner.delete_many(keys[: self._rng.randrange(len(keys))])
            raise ObjectError("injected: some keys deleted", Outcome.AMBIGUOUS)
        await self._around("delete", lambda: self._inner.delete_many(keys), writes=True)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        """A fault may come before any object, as between two pages."""
        async for info in self._inner.list(prefix, after):
            await self._before(f"list {prefix}")
            yield info

    async def close(self) -> None:
        await self._inner.close()

    async def _around(
        self, what: str, work: Callable[[], Awaitable[T]], *, writes: bool = False
    ) -> T:
        await self._before(what)
        if writes and self._hit("unclear"):
            raise ObjectError(f"injected: {what} unclear, not done", Outcome.AMBIGUOUS)
        result = await work()
        if self._hit("after"):
            kind = Outcome.AMBIGUOUS if writes else Outcome.NOT_DONE
            raise ObjectError(f"injected: {what}, answer lost", kind)
        return result

    async def _before(self, what: str) -> None:
        if self._hit("latency"):
            await self._sleep(self._rng.random() * self.faults.latency_seconds_max)
        if self._hit("stall"):
            await self._sleep(self.faults.stall_seconds)
        if self.down:
            self.injected["down"] += 1
            raise ObjectError(f"injected: {what}, store down", Outcome.NOT_DONE)
        if self._hit("before"):
            raise ObjectError(f"injected: {what} failed", Outcome.NOT_DONE)
        if self._hit("throttled"):
            raise ObjectError(f"injected: {what}, slow down", Outcome.NOT_DONE, throttled=True)
        if self._hit("refused"):
            raise ObjectError(f"injected: {what} refused", Outcome.REFUSED)

    def _hit(self, name: str) -> bool:
        """Draws only for rates that are set, so that a new kind of fault does not change old
        seeds."""
        rate: float = getattr(self.faults, name)
        hit = rate > 0 and self._rng.random() < rate
        if hit:
            self.injected[name] += 1
        return hit
