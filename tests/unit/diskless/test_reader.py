"""The reader: right offsets, few reads, and a damaged object affects only its own partitions."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest
from crc32c import crc32c

from skylog.diskless.batch import LOG_APPEND_TIME, BatchCoordinate
from skylog.diskless.reader import DisklessReader, ObjectCache, ReadRequest, patch
from skylog.diskless.reader import reader as reader_module
from skylog.diskless.reader.cache import ENTRY_BYTES, HeldObject
from skylog.diskless.reader.patch import VIEWED_BYTES_MIN, Served, serve
from skylog.diskless.reader.plan import GAP_BYTES_MAX, Range, merged, ranges_of, runs_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import NotFound
from skylog.wire.batch import split_batches
from tests.unit.diskless.batches import coordinate
from tests.unit.diskless.engine import RNG, TOPIC_ID, Engine, item, records


class CountingStore:
    """Counts gets, and damages objects by script."""

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


def at(key: str, start: int, size: int, first: int = 0, last: int = 0) -> BatchCoordinate:
    place = {"byte_offset": start, "byte_size": size}
    return coordinate(key, **place, base_offset=first, last_offset=last)


def test_one_range_per_object_and_partition_and_neighbours_are_joined() -> None:
    # ENG-59
    first = [at("a", 1, 10), at("a", 11, 10), at("b", 1, 5)]
    second = [at("a", 21, 10)]
    far = [at("a", 31 + GAP_BYTES_MAX + 1, 10)]
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
    found = coordinate(
        "k",
        byte_offset=1,
        byte_size=len(stored),
        base_offset=40,
        last_offset=42,
        log_append_timestamp=123,
        batch_max_timestamp=5,
        timestamp_type=LOG_APPEND_TIME,
    )
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
    found = at("k", 1, len(stored), 0, last)
    with pytest.raises(KafkaError) as caught:
        serve(found, [memoryview(stored)])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_the_cache_is_bounded_and_serves_ranges_across_parts() -> None:
    cache = ObjectCache(100 + 2 * ENTRY_BYTES)
    keys = [ObjectKey.new("wal", 1, RNG) for _ in range(3)]
    cache.put(keys[0], [b"a" * 10, b"b" * 30], 40)
    cache.put(keys[1], [b"c" * 50], 50)
    held = cache.get(str(keys[0]), 5, 15)
    assert held is not None
    assert b"".join(held.read(5, 15)) == b"aaaaabbbbb"
    assert cache.get(str(keys[0]), 5, 41) is None
    cache.put(keys[2], [b"d" * 40], 40)
    assert cache.get(str(keys[1]), 0, 1) is None  # used longest ago
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
    found = cache.get(str(small), 15, 25)
    assert found is not None
    assert [bytes(piece) for piece in found.read(15, 25)] == [b"5678901234"]
    found = cache.get(str(large), 4_000, 6_000)
    assert found is not None
    assert len(found.read(4_000, 6_000)) == 2


def test_batches_that_follow_one_another_are_one_run() -> None:
    def batch(key: str, start: int, base: int, *, stamp: int = 9, kind: int = 0) -> BatchCoordinate:
        return coordinate(
            key,
            byte_offset=start,
            byte_size=10,
            base_offset=base,
            last_offset=base + 1,
            log_append_timestamp=stamp,
            timestamp_type=kind,
        )

    a = [batch("a", 1, 0), batch("a", 11, 2), batch("a", 21, 4)]
    assert runs_of([]) == []
    assert runs_of(a[:1]) == a[:1]
    whole = coordinate(
        "a", byte_offset=1, byte_size=30, base_offset=0, last_offset=5, log_append_timestamp=9
    )
    assert runs_of(a) == [whole]
    apart = [
        batch("b", 31, 6),  # another object
        batch("b", 51, 8),  # bytes between
        batch("b", 61, 11),  # offsets between
        batch("b", 71, 13, stamp=10),
        batch("b", 81, 15, stamp=10, kind=LOG_APPEND_TIME),
    ]
    assert runs_of([*a, *apart]) == [*runs_of(a), *apart]


def stored_run(sizes: list[int], first: int = 40) -> tuple[bytes, BatchCoordinate]:
    """Batches of records of these sizes, and their common coordinate."""
    batches = [bytes(item(b"v" * size, count=2).buffer) for size in sizes]
    data = b"".join(batches)
    last = first + 2 * len(batches) - 1
    return data, at("k", 1, len(data), first, last)


LARGE = VIEWED_BYTES_MIN


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3], [LARGE], [LARGE, LARGE, 1], [1, LARGE]])
@pytest.mark.parametrize("how", ["copy", "own", "view"])
def test_a_run_is_served_as_its_batches_are_one_by_one(sizes: list[int], how: str) -> None:
    data, run = stored_run(sizes)
    expected, position, offset = b"", 0, 40
    for size in sizes:
        batch, _ = stored_run([size])
        one = at("k", 1, len(batch), offset, offset + 1)
        expected += serve(one, [memoryview(data)[position : position + len(batch)]])
        position, offset = position + len(batch), offset + 2
    served = Served(run, copy=how == "copy", own=how == "own")
    stored = bytearray(data)
    served.add_all([memoryview(stored)])
    assert b"".join(served.parts) == expected
    assert (stored == data) == (how != "own")
    assert served.size == len(expected)
    assert served.error is None
    assert [batch.base_offset for batch in split_batches(expected)] == [*range(40, offset, 2)]
    assert all(batch.crc_ok() for batch in split_batches(expected))


@pytest.mark.parametrize("size", [1, LARGE])
@pytest.mark.parametrize("own", [True, False])
def test_the_good_beginning_of_a_run_is_served(size: int, own: bool) -> None:
    data, run = stored_run([size] * 3)
    broken = bytearray(data)
    broken[-1] ^= 1
    served = Served(run, own=own)
    served.add_all([memoryview(broken)])
    assert served.error is not None
    assert served.error.code is ErrorCode.CORRUPT_MESSAGE
    found = b"".join(served.parts)
    assert len(found) == served.size == len(data) * 2 // 3
    assert [batch.base_offset for batch in split_batches(found)] == [40, 42]


def test_large_batches_are_not_copied_and_the_stored_bytes_stay_as_they_are() -> None:
    data, run = stored_run([LARGE, LARGE])
    kept = bytes(data)
    served = Served(run)
    served.add_all([memoryview(data)])
    views = [part for part in served.parts if isinstance(part, memoryview)]
    assert [view.obj is data for view in views] == [True, True]
    assert data == kept
    copied = Served(run, copy=True)
    copied.add_all([memoryview(data)])
    assert not any(isinstance(p, memoryview) and p.obj is data for p in copied.parts)


async def test_bytes_from_the_store_are_checked_once_and_own_ones_not_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"b")])
    checked = []

    def counting(data: Any) -> int:
        checked.append(len(data))
        return crc32c(data)

    monkeypatch.setattr(patch, "crc32c", counting)
    assert await engine.values() == [(0, b"a"), (1, b"b")]
    assert checked == []
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)
    for _ in range(3):
        found = await reader.fetch([ReadRequest(TOPIC_ID, 0, 0, 1 << 20)], 1 << 20)
        assert records(found[0].records) == [(0, b"a"), (1, b"b")]
    assert len(checked) == 2
    assert len(engine.store.gets) == 1


async def test_an_object_is_checked_while_others_are_still_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a")])
    await engine.writer.append(2, [item(b"b")])
    slow = engine.plane.commits[1].object_key
    checked, released, get = asyncio.Event(), asyncio.Event(), engine.store.get

    def noting(data: Any) -> int:
        checked.set()
        return crc32c(data)

    async def slowly(key: Any, start: int = 0, end: int | None = None) -> Any:
        if str(key) == slow:
            await released.wait()
        return await get(key, start, end)

    monkeypatch.setattr(patch, "crc32c", noting)
    monkeypatch.setattr(engine.store, "get", slowly)
    request = ReadRequest(TOPIC_ID, 0, 0, 1 << 20)
    fetch = asyncio.ensure_future(engine.cold().fetch([request], 1 << 20))
    async with asyncio.timeout(30):
        await checked.wait()
    assert not fetch.done()
    released.set()
    assert records((await fetch)[0].records) == [(0, b"a"), (1, b"b")]


async def test_an_answer_does_not_hold_an_object_of_which_it_uses_little() -> None:
    engine = await Engine(CountingStore).start()
    large = b"x" * LARGE
    await engine.writer.append(1, [item(large, n) for n in range(4)] * 2)
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)

    async def holding(partitions: int) -> int:
        requests = [ReadRequest(TOPIC_ID, n, 0, 2 * LARGE - 1) for n in range(partitions)]
        results = await reader.fetch(requests, 1 << 20)
        parts = [part for result in results for part in result.parts]
        return sum(isinstance(p, memoryview) and isinstance(p.obj, bytes) for p in parts)

    assert await holding(1) == 0
    assert await holding(4) == 4


class AtHandStore(CountingStore):
    """Has everything at hand by default; ``wrong`` flips a bit each time."""

    wrong = False
    nothing = False

    @property
    def at_hand(self) -> Any:
        return self

    def put_now(self, key: Any, data: Any) -> bool:
        return False

    def get_now(self, key: Any, start: int, end: int) -> bytearray | None:
        objects = self.inner._objects
        if self.nothing or key not in objects or str(key) in self.missing:
            return None
        data = bytearray(objects[key].data[start:end])
        if len(data) < end - start:
            return None
        if self.wrong:
            data[-1] ^= 1
        return data


async def test_what_is_at_hand_is_read_by_range_and_neither_kept_nor_waited_for() -> None:
    engine = await Engine(AtHandStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"x" * GAP_BYTES_MAX * 2, 1), item(b"c", 2)])
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)
    for _ in range(2):
        requests = [ReadRequest(TOPIC_ID, n, 0, 1 << 20) for n in (0, 2)]
        first, second = await reader.fetch(requests, 1 << 20)
        assert records(first.records) == [(0, b"a")]
        assert records(second.records) == [(0, b"c")]
    assert engine.store.gets == []
    assert reader.objects.gets_at_once == 4
    assert len(reader.objects.cache) == 0
    engine.store.nothing = True
    assert records((await reader.fetch(requests, 1 << 20))[0].records) == [(0, b"a")]
    assert len(engine.store.gets) == 1


async def test_the_same_batches_may_be_asked_for_twice_at_once() -> None:
    """Rewriting headers in place is idempotent."""
    engine = await Engine(AtHandStore).start()
    for number in range(2):
        await engine.writer.append(
            number, [item(b"%d" % n, timestamp_type=LOG_APPEND_TIME) for n in range(3)]
        )
    requests = [ReadRequest(TOPIC_ID, 0, offset, 1 << 20) for offset in (0, 1, 4, 0)]
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)
    results = await reader.fetch(requests, 1 << 20)
    expected = [(n, b"%d" % (n % 3)) for n in range(6)]
    assert [records(one.records) for one in results] == [
        expected, expected[1:], expected[4:], expected,
    ]  # fmt: skip
    for one in results:
        assert all(batch.crc_ok() for batch in split_batches(bytes(one.records)))
    assert engine.store.gets == []


async def test_what_is_at_hand_and_wrong_is_asked_for_again() -> None:
    engine = await Engine(AtHandStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"b", 1)])
    engine.store.wrong = True
    requests = [ReadRequest(TOPIC_ID, n, 0, 1 << 20) for n in (0, 1)]
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)
    found = await reader.fetch(requests, 1 << 20)
    assert [records(one.records) for one in found] == [[(0, b"a")], [(0, b"b")]]
    key = engine.plane.commits[0].object_key
    reader.objects.forget(key)
    engine.store.corrupt = {key: 99}
    first, second = await reader.fetch(requests, 1 << 20)
    assert (first.error, records(first.records)) == (ErrorCode.NONE, [(0, b"a")])
    assert (second.error, second.size) == (ErrorCode.CORRUPT_MESSAGE, 0)
    assert reader.stats.corrupt == 1


async def test_what_is_at_hand_leaves_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await Engine(AtHandStore).start()
    for number in range(3):
        await engine.writer.append(number, [item(b"x" * 100)])
    monkeypatch.setattr(reader_module, "TURN_BYTES", 1)
    reader = DisklessReader(engine.plane, engine.store, ObjectCache(1 << 20), engine.clock)
    fetch = asyncio.ensure_future(reader.fetch([ReadRequest(TOPIC_ID, 0, 0, 1 << 20)], 1 << 20))
    turns = 0
    while not fetch.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 3
    assert len(records((await fetch)[0].records)) == 3
    monkeypatch.undo()


def test_what_was_checked_is_remembered_in_ranges() -> None:
    held = HeldObject([bytes(100)])
    assert not held.is_checked(0, 1)
    for start, end in ((10, 20), (40, 50), (20, 30), (60, 70)):
        held.note_checked(start, end)
    assert held.is_checked(10, 30)
    assert held.is_checked(12, 13)
    assert not held.is_checked(10, 31)
    assert not held.is_checked(30, 40)
    held.note_checked(25, 65)
    assert held.is_checked(10, 70)
    assert not held.is_checked(9, 70)
    assert not held.is_checked(10, 71)
    assert HeldObject([bytes(9)], 5, checked=True).is_checked(5, 14)


async def test_an_object_that_is_too_short_is_corrupt() -> None:
    engine = await Engine(CountingStore).start()
    await engine.writer.append(1, [item(b"a"), item(b"b"), item(b"c", 1)])
    key = ObjectKey.parse(engine.plane.commits[0].object_key)
    whole = await engine.memory.get(key)
    await engine.memory.delete_many([key])
    await engine.memory.put(key, whole[: engine.plane.commits[0].batches[1].extent.byte_offset + 9])
    requests = [ReadRequest(TOPIC_ID, n, 0, 1 << 20) for n in (0, 1)]
    first, second = await engine.cold().fetch(requests, 1 << 20)
    assert (first.error, records(first.records)) == (ErrorCode.NONE, [(0, b"a")])
    assert (second.error, second.size) == (ErrorCode.CORRUPT_MESSAGE, 0)
