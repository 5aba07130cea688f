"""The reader: right offsets, few reads, and one bad object costs only its own partition."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from skylog.diskless.plane import LOG_APPEND_TIME, BatchCoordinate
from skylog.diskless.reader import DisklessReader, ObjectCache, ReadRequest
from skylog.diskless.reader.cache import ENTRY_BYTES
from skylog.diskless.reader.patch import serve
from skylog.diskless.reader.plan import GAP_BYTES_MAX, Range, merged, ranges_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import NotFound
from skylog.wire.batch import split_batches
from tests.unit.diskless.engine import RNG, TOPIC_ID, Engine, item, records


class CountingStore:
    """Counts gets, and breaks objects as told."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.gets: list[tuple[str, int, int | None]] = []
        self.missing: set[str] = set()
        self.corrupt: dict[str, int] = {}

    async def get(self, key: Any, start: int = 0, end: int | None = None) -> bytes:
        self.gets.append((str(key), start, end))
        await asyncio.sleep(0)
        if str(key) in self.missing:
            raise NotFound(str(key))
        data: bytes = await self.inner.get(key, start, end)
        if self.corrupt.get(str(key), 0) > 0:
            self.corrupt[str(key)] -= 1
            return data[:-1] + bytes([data[-1] ^ 1])
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def coordinate(key: str, start: int, size: int) -> BatchCoordinate:
    return BatchCoordinate(1, key, start, size, 0, 0, -1, -1, 0)


def test_one_range_per_object_and_partition_and_neighbours_are_joined() -> None:
    # ENG-59
    first = [coordinate("a", 1, 10), coordinate("a", 11, 10), coordinate("b", 1, 5)]
    second = [coordinate("a", 21, 10)]
    far = [coordinate("a", 31 + GAP_BYTES_MAX + 1, 10)]
    assert ranges_of([first, second, far]) == [
        Range("a", 1, 31),
        Range("a", 31 + GAP_BYTES_MAX + 1, 31 + GAP_BYTES_MAX + 11),
        Range("b", 1, 6),
    ]
    assert merged([]) == []


async def test_what_this_broker_wrote_needs_no_get() -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"b", 1)])
    assert await engine.values() == [(0, b"a")]
    assert engine.store.gets == []


async def test_many_readers_share_one_get() -> None:
    # ENG-33
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"b", 1)])
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)
    requests = [ReadRequest(TOPIC_ID, n, 0, 1 << 20) for n in (0, 1)]
    found = await asyncio.gather(*(reader.fetch(requests, 1 << 20) for _ in range(10)))
    assert all(records(r[1].records) == [(0, b"b")] for r in found)
    assert len(engine.store.gets) == 1


async def test_old_objects_are_read_by_range_past_the_cache() -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"b", 1)])
    cache = ObjectCache(1 << 20)
    reader = DisklessReader(engine.plane, engine.store, cache, _Later(engine.clock))
    found = await reader.fetch([ReadRequest(TOPIC_ID, 1, 0, 1 << 20)], 1 << 20)
    assert records(found[0].records) == [(0, b"b")]
    (_, start, end) = engine.store.gets[0]
    assert end is not None
    assert start > 1
    assert len(cache) == 0


class _Later:
    """A clock an hour ahead."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return int(self._clock.now_ms()) + 3_600_000

    def monotonic(self) -> float:
        return float(self._clock.monotonic())


async def test_a_missing_object_ends_only_its_own_partition() -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"x", 1)])
    await engine.writer.append(2, [item(b"b")])
    lost = engine.plane.commits[1].object_key
    engine.store.missing.add(lost)
    reader = engine.cold()
    requests = [ReadRequest(TOPIC_ID, n, 0, 1 << 20) for n in (0, 1)]
    first, second = await reader.fetch(requests, 1 << 20)
    assert (first.error, records(first.records)) == (ErrorCode.NONE, [(0, b"a")])
    assert (second.error, records(second.records)) == (ErrorCode.NONE, [(0, b"x")])
    assert first.high_watermark == 2
    only = (await reader.fetch([ReadRequest(TOPIC_ID, 0, 1, 1 << 20)], 1 << 20))[0]
    assert only.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert reader.stats.missing >= 1


async def test_bytes_that_are_wrong_once_are_read_again_and_for_good_are_corrupt() -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a")])
    key = engine.plane.commits[0].object_key
    engine.store.corrupt[key] = 1
    reader = engine.cold()
    request = [ReadRequest(TOPIC_ID, 0, 0, 1 << 20)]
    assert records((await reader.fetch(request, 1 << 20))[0].records) == [(0, b"a")]
    engine.store.corrupt[key] = 10
    assert (await reader.fetch(request, 1 << 20))[0].error is ErrorCode.CORRUPT_MESSAGE
    assert reader.stats.corrupt == 1


async def test_ranges_of_many_objects_are_read_at_once() -> None:
    # ENG-57, ENG-58
    engine = await Engine(CountingStore).start()
    for number in range(20):
        await engine.writer.append(number, [item(b"%d" % number)])
    found = await engine.cold().fetch([ReadRequest(TOPIC_ID, 0, 0, 1 << 20)], 1 << 20)
    assert records(found[0].records) == [(n, b"%d" % n) for n in range(20)]
    assert len(engine.store.gets) == 20


@pytest.mark.parametrize("offset", [-1, 3])
async def test_out_of_range(offset: int) -> None:
    engine = await Engine().start()
    await engine.writer.append(1, [item(b"a", count=2)])
    result = (await engine.reader.fetch([ReadRequest(TOPIC_ID, 0, offset, 1)], 1))[0]
    assert result.error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_log_append_time_is_stamped_and_the_checksum_made_anew() -> None:
    # ENG-25
    stored = bytes(item(b"a", count=3).buffer)
    found = BatchCoordinate(1, "k", 1, len(stored), 40, 42, 123, 5, LOG_APPEND_TIME)
    batch = next(iter(split_batches(serve(found, [memoryview(stored)]))))
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (40, 42, 123)
    assert batch.is_log_append_time
    assert batch.crc_ok()


@pytest.mark.parametrize("fault", ["short", "long", "flipped", "count"])
def test_what_is_not_as_it_should_be_is_not_served(fault: str) -> None:
    stored = bytearray(item(b"a").buffer)
    last = 0
    if fault == "short":
        stored = stored[:-1]
    elif fault == "long":
        stored += b"\0" * 70
    elif fault == "flipped":
        stored[-1] ^= 1
    else:
        last = 1
    found = BatchCoordinate(1, "k", 1, len(stored), 0, last, -1, -1, 0)
    with pytest.raises(KafkaError) as caught:
        serve(found, [memoryview(stored)])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_the_cache_is_bounded_and_serves_ranges_across_parts() -> None:
    cache = ObjectCache(100 + 2 * ENTRY_BYTES)
    keys = [ObjectKey.new("wal", 1, RNG) for _ in range(3)]
    cache.put(keys[0], [b"a" * 10, b"b" * 30], 40)
    cache.put(keys[1], [b"c" * 50], 50)
    pieces = cache.read(str(keys[0]), 5, 15)
    assert pieces is not None
    assert b"".join(pieces) == b"aaaaabbbbb"
    assert cache.read(str(keys[0]), 5, 41) is None
    cache.put(keys[2], [b"d" * 40], 40)
    assert cache.read(str(keys[1]), 0, 1) is None  # used longest ago
    assert cache.bytes == 80 + 2 * ENTRY_BYTES
    too_large = 101 + ENTRY_BYTES
    cache.put(ObjectKey.new("wal", 2, RNG), [b"e" * too_large], too_large)
    assert cache.bytes == 80 + 2 * ENTRY_BYTES
    cache.forget(str(keys[0]))
    assert cache.bytes == 40 + ENTRY_BYTES


def test_many_small_objects_take_no_more_memory_than_they_may() -> None:
    limit = 1 << 20
    tracemalloc.start()
    try:
        cache = ObjectCache(limit)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20_000):
            cache.put(ObjectKey.new("wal", number, RNG), [bytes(100)], 100)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(cache) > 100
    assert taken <= limit * 1.1


def test_many_small_parts_are_kept_as_one() -> None:
    cache = ObjectCache(1 << 20)
    small, large = (ObjectKey.new("wal", 1, RNG) for _ in range(2))
    cache.put(small, [b"%d" % (number % 10) for number in range(1000)], 1000)
    cache.put(large, [bytearray(5000), bytearray(5000)], 10_000)
    found = cache.read(str(small), 15, 25)
    assert found is not None
    assert [bytes(piece) for piece in found] == [b"5678901234"]
    assert len(cache.read(str(large), 4_000, 6_000) or []) == 2
