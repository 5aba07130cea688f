"""Counts the requests to a store, their failures, bytes and cost.

It wraps the store directly, below the retries, because every attempt is charged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.kernel.limits import OBJECT_KEYS_PER_REQUEST
from skylog.objects.keys import ObjectKey
from skylog.objects.store import (
    AtHand,
    NotFound,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Payload,
    Source,
    size_of,
)

Operation: TypeAlias = Literal["put", "get", "head", "delete", "list"]
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)

# Dollars per request, S3 Standard's list price: an estimate to compare settings, not a bill.
BUCKET_PRICES: Final[Mapping[Operation, float]] = {
    "put": 5e-6,
    "list": 5e-6,
    "get": 4e-7,
    "head": 4e-7,
    "delete": 0.0,
}
FREE: Final[Mapping[Operation, float]] = dict.fromkeys(OPERATIONS, 0.0)


@dataclass(slots=True)
class OperationStats:
    """One kind of operation. A missing object is not a failure."""

    requests: int = 0
    failures: int = 0
    throttled: int = 0
    bytes: int = 0


@dataclass(slots=True)
class StoreStats:
    """All operations on a store since it was opened."""

    prices: Mapping[Operation, float] = field(default_factory=lambda: BUCKET_PRICES)
    operations: dict[Operation, OperationStats] = field(
        default_factory=lambda: {name: OperationStats() for name in OPERATIONS}
    )

    @property
    def bytes_written(self) -> int:
        return self.operations["put"].bytes

    @property
    def bytes_read(self) -> int:
        return self.operations["get"].bytes

    @property
    def cost(self) -> float:
        """Dollars, by ``prices``."""
        return sum(stats.requests * self.prices[name] for name, stats in self.operations.items())

    @contextmanager
    def counting(self, name: Operation, requests: int = 1) -> Iterator[OperationStats]:
        stats = self.operations[name]
        stats.requests += requests
        try:
            yield stats
        except NotFound:
            raise
        except ObjectError as error:
            stats.failures += 1
            stats.throttled += error.throttled
            raise


class StoreCollector(Collector):
    """Reports the totals of a store for Prometheus, under names that begin with ``prefix``."""

    def __init__(self, stats: StoreStats, prefix: str = "skylog_objects") -> None:
        self._stats = stats
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        shown = {
            "requests": "Requests to the object store; each attempt counts.",
            "failures": "Requests to the object store that failed.",
            "throttled": "Requests that the object store throttled.",
            "bytes": "Bytes written to and read from the object store.",
        }
        for field_name, text in shown.items():
            family = CounterMetricFamily(f"{self._prefix}_{field_name}", text, labels=["operation"])
            for name, counted in self._stats.operations.items():
                family.add_metric([name], getattr(counted, field_name))
            yield family
        text = "Estimate of what the requests cost, at list prices of S3 Standard."
        yield CounterMetricFamily(f"{self._prefix}_cost_dollars", text, value=self._stats.cost)


class _MeteredAtHand:
    """Counts what was done; the rest is counted when ``put`` or ``get`` is called."""

    def __init__(self, inner: AtHand, stats: StoreStats) -> None:
        self._inner = inner
        self._stats = stats

    def put_now(self, key: ObjectKey, data: Payload) -> bool:
        done = self._inner.put_now(key, data)
        if done:
            stats = self._stats.operations["put"]
            stats.requests += 1
            stats.bytes += size_of(data)
        return done

    def get_now(self, key: ObjectKey, start: int, end: int) -> bytearray | None:
        data = self._inner.get_now(key, start, end)
        if data is not None:
            stats = self._stats.operations["get"]
            stats.requests += 1
            stats.bytes += len(data)
        return data


class MeteredStore(ObjectStore):
    """A store whose use is counted in ``stats``."""

    def __init__(self, inner: ObjectStore, stats: StoreStats | None = None) -> None:
        self._inner = inner
        self.stats = stats or StoreStats()
        self._at_hand = inner.at_hand and _MeteredAtHand(inner.at_hand, self.stats)

    @property
    def at_hand(self) -> AtHand | None:
        return self._at_hand

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        with self.stats.counting("put") as stats:
            await self._inner.put(key, data, if_absent=if_absent)
            stats.bytes += size_of(data)

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        with self.stats.counting("put", self._inner.put_file_requests(size)) as stats:
            await self._inner.put_file(key, source, size)
            stats.bytes += size

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        with self.stats.counting("get") as stats:
            data = await self._inner.get(key, start, end)
            stats.bytes += len(data)
            return data

    async def head(self, key: ObjectKey) -> ObjectInfo:
        with self.stats.counting("head"):
            return await self._inner.head(key)

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        requests = -(-len(keys) // OBJECT_KEYS_PER_REQUEST)
        with self.stats.counting("delete", requests):
            await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        count = 0
        with self.stats.counting("list") as stats:
            async for info in self._inner.list(prefix, after):
                count += 1
                if count % OBJECT_KEYS_PER_REQUEST == 0:
                    stats.requests += 1  # the next page
                yield info

    async def close(self) -> None:
        await self._inner.close()
