"""Reading objects: every row once and in order, few requests, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from skylog.bulk import bucket
from skylog.bulk.bucket import BucketSettings, BucketSource, Stores
from skylog.bulk.decode import decode
from skylog.bulk.errors import DataLossError
from skylog.bulk.source import LossPolicy
from skylog.bulk.tiered import TieredReads
from skylog.client.bulk import Split
from skylog.client.offsets import OffsetAtTime
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError, Outcome
from skylog.wire.batch import Compression
from tests.unit.bulk.objects_world import World


def source(
    world: World, splits: list[Split], *, window: int = 1 << 20, fails: bool = True
) -> BucketSource:
    settings = BucketSettings(window, -1, LossPolicy(fails))
    nobody: Any = None
    stores = Stores(world.store, TieredReads(world.open_tiered, InlineExecutor()))
    return BucketSource(nobody, stores, InlineExecutor(), splits, settings, world)


async def values(reading: BucketSource) -> list[bytes]:
    found: list[bytes] = []
    try:
        while (window := await reading.next()) is not None:
            for piece in window:
                rows = decode(
                    piece.batches,
                    topic="t",
                    partition=piece.split.partition,
                    columns=["value"],
                    start_offset=piece.split.start_offset,
                    end_offset=piece.split.end_offset,
                )
                found += rows["value"].to_pylist()
    finally:
        await reading.close()
    return found


def expected(partition: int, start: int, end: int) -> list[bytes]:
    return [b"%d:%d" % (partition, offset) for offset in range(start, end)]


@pytest.mark.parametrize("codec", Compression)
async def test_rows_come_once_and_in_order(codec: int) -> None:
    world = World()
    for _ in range(5):
        await world.write([(0, 10), (1, 7), (0, 3)], codec=codec)
    found = await values(source(world, [world.split(0), world.split(1)]))
    assert found == expected(0, 0, 65) + expected(1, 0, 35)


async def test_a_range_that_cuts_batches() -> None:
    world = World()
    for _ in range(3):
        await world.write([(0, 10)])
    assert await values(source(world, [world.split(0, 7, 23)])) == expected(0, 7, 23)
    parts = [world.split(0, 7, 15), world.split(0, 15, 23)]
    assert await values(source(world, parts)) == expected(0, 7, 23)


@pytest.mark.parametrize("page", [1, 3])
async def test_locations_come_in_pages(page: int) -> None:
    world = World(page=page)
    for _ in range(7):
        await world.write([(0, 4)])
    assert await values(source(world, [world.split(0, 2)])) == expected(0, 2, 28)


async def test_neighbours_in_an_object_are_read_with_one_request() -> None:
    world = World()
    for _ in range(4):
        await world.write([(partition, 3) for partition in range(100)])
    splits = [world.split(partition) for partition in range(100)]
    found = await values(source(world, splits))
    assert len(found) == 100 * 12
    assert len(world.store.gets) == 4


async def test_what_is_at_hand_is_not_asked_for() -> None:
    world = World()
    keys = [await world.write([(0, 10), (1, 5)]) for _ in range(4)]
    for key in keys[::2]:
        world.store.near[key.text] = await world.store.get(key)
    world.store.gets.clear()
    found = await values(source(world, [world.split(0)]))
    assert found == expected(0, 0, 40)
    assert sorted(key for key, _, _ in world.store.gets) == sorted(key.text for key in keys[1::2])


async def test_wrong_bytes_that_were_at_hand_are_told() -> None:
    world = World()
    key = await world.write([(0, 10)])
    data = await world.store.get(key)
    world.store.near[key.text] = data[:-1] + bytes([data[-1] ^ 1])
    reading = source(world, [world.split(0)])
    with pytest.raises(KafkaError) as caught:
        await values(reading)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert key.text in str(caught.value)


async def test_many_splits_are_located_with_one_request() -> None:
    world = World(page=1000)
    await world.write([(partition, 3) for partition in range(600)])
    splits = [world.split(partition) for partition in range(600)]
    assert len(await values(source(world, splits))) == 1800
    assert world.requests == [256, 256, 88]
    world.requests.clear()
    large = [replace(split, bytes=3 << 20) for split in splits[:7]]
    assert len(await values(source(world, large))) == 21
    assert world.requests == [2, 2, 2]  # and the last one by itself


@pytest.mark.parametrize("page", [1, 2, 5])
async def test_splits_that_do_not_fit_into_an_answer_are_asked_for_again(page: int) -> None:
    world = World(page=page)
    for _ in range(3):
        await world.write([(partition, 2) for partition in range(8)])
    splits = [world.split(partition) for partition in range(8)]
    assert await values(source(world, splits)) == [
        value for partition in range(8) for value in expected(partition, 0, 6)
    ]


async def test_windows_bound_what_is_in_memory() -> None:
    world = World()
    for _ in range(40):
        await world.write([(0, 50)])
    size = world.batches[0][0].byte_size
    reading = source(world, [world.split(0)], window=2 * size)
    window = await reading.next()
    assert window is not None
    assert sum(piece.bytes for piece in window) <= 2 * size
    for _ in range(50):
        await asyncio.sleep(0)
    # The one that was taken, and those read ahead; not one more.
    assert len(world.store.gets) <= 2 * (1 + bucket.WINDOWS_AHEAD)
    await reading.close()


async def test_a_batch_larger_than_a_window_is_read_alone() -> None:
    world = World()
    await world.write([(0, 50)])
    await world.write([(0, 50)])
    assert await values(source(world, [world.split(0)], window=10)) == expected(0, 0, 100)


def before_first_get(world: World, happens: Callable[[], Awaitable[object]]) -> None:
    """Something that happens between locating and reading."""
    original = world.store.get
    done = False

    async def get(key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        nonlocal done
        if not done:
            done = True
            await happens()
        return await original(key, start, end)

    world.store.get = get  # type: ignore[method-assign]


async def test_objects_that_moved_since_they_were_located_are_found_again() -> None:
    world = World()
    first = await world.write([(0, 10), (1, 10)])
    await world.write([(0, 10)])
    before_first_get(world, lambda: world.move(first))
    reading = source(world, [world.split(0), world.split(1)])
    assert await values(reading) == expected(0, 0, 20) + expected(1, 0, 10)
    assert world.located.count((0, 0)) == 2


async def test_an_object_that_is_nowhere_is_named() -> None:
    world = World()
    await world.write([(0, 10)])
    gone = await world.write([(0, 10)])
    await world.store.delete_many([gone])
    with pytest.raises(StorageError, match=f"topic t partition 0 offset 10: cannot read {gone}"):
        await values(source(world, [world.split(0)]))


async def test_a_store_that_refuses_is_quoted() -> None:
    world = World()
    key = await world.write([(0, 10)])
    world.store.failures[key.text] = [ObjectError("403 AccessDenied", Outcome.REFUSED)]
    with pytest.raises(StorageError, match=r"topic t partition 0 offset 0: .* 403 AccessDenied"):
        await values(source(world, [world.split(0)]))


async def test_bytes_that_were_wrong_once_are_read_again() -> None:
    world = World()
    key = await world.write([(0, 10)])
    world.store.garbled[key.text] = 1
    assert await values(source(world, [world.split(0)])) == expected(0, 0, 10)


async def test_bytes_that_stay_wrong_are_told_with_their_place() -> None:
    world = World()
    await world.write([(0, 10)])
    key = await world.write([(0, 10)])
    world.store.garbled[key.text] = 99
    with pytest.raises(
        KafkaError, match=f"topic t partition 0 offset 10 in {key} at 1: "
    ) as caught:
        await values(source(world, [world.split(0)]))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


async def test_an_object_that_is_shorter_than_its_coordinates() -> None:
    world = World()
    key = await world.write([(0, 10)])
    whole = await world.store.get(key)
    await world.store.put(key, whole[:-5])
    with pytest.raises(StorageError, match=f"offset 0: cannot read {key}: .*no bytes"):
        await values(source(world, [world.split(0)]))


async def at_earliest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def list_offsets(_cluster: object, times: dict[Any, int]) -> dict[Any, OffsetAtTime]:
        return {key: OffsetAtTime(world.log_start[key.partition], -1, 0) for key in times}

    monkeypatch.setattr("skylog.bulk.source.list_offsets", list_offsets)


async def test_records_deleted_before_they_were_located(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    await world.write([(0, 10)])
    await world.write([(0, 10)])
    split = world.split(0)
    await at_earliest(world, monkeypatch)
    await world.delete_before(0, 13)
    with pytest.raises(DataLossError, match="offsets 0 to 12 are gone: the log begins at 13"):
        await values(source(world, [split]))
    assert await values(source(world, [split], fails=False)) == expected(0, 13, 20)


@pytest.mark.parametrize("fails", [True, False])
async def test_one_split_of_many_that_lost_records(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    for _ in range(2):
        await world.write([(0, 5), (1, 5)])
    splits = [world.split(0), world.split(1)]
    await at_earliest(world, monkeypatch)
    world.log_start[0] = 7
    reading = source(world, splits, fails=fails)
    if fails:
        with pytest.raises(DataLossError, match="partition 0: offsets 0 to 6 are gone"):
            await values(reading)
    else:
        assert await values(reading) == expected(0, 7, 10) + expected(1, 0, 10)
    assert world.requests == [2]


@pytest.mark.parametrize("fails", [True, False])
async def test_records_deleted_after_they_were_located(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    first = await world.write([(0, 10), (1, 5)])
    await world.write([(0, 10)])
    await at_earliest(world, monkeypatch)

    async def delete() -> None:
        await world.move(first)  # partition 1 keeps its batch
        world.log_start[0] = 10
        world.batches[0] = world.batches[0][1:]

    before_first_get(world, delete)
    reading = source(world, [world.split(0), world.split(1)], fails=fails)
    if fails:
        with pytest.raises(DataLossError, match="offsets 0 to 9 are gone"):
            await values(reading)
    else:
        assert await values(reading) == expected(0, 10, 20) + expected(1, 0, 5)


async def test_a_topic_that_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    await world.write([(0, 10)])

    async def locate(_split: Split, _position: int) -> Any:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "another topic")

    monkeypatch.setattr(world, "locate", locate)
    with pytest.raises(DataLossError, match="offsets 0 to 9 are gone: the topic is gone"):
        await values(source(world, [world.split(0)]))
    assert await values(source(world, [world.split(0)], fails=False)) == []


async def test_an_answer_that_goes_nowhere_ends_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    await world.write([(0, 10)])
    right = world.locate

    async def locate(split: Split, position: int) -> Any:
        found = await right(split, position)
        return type(found)(found.batches, position, 0, 10)

    monkeypatch.setattr(world, "locate", locate)
    with pytest.raises(KafkaError, match="t-0: batches located from 0 to 0"):
        await values(source(world, [world.split(0)]))


async def test_closing_early_leaves_nothing_behind() -> None:
    world = World()
    for _ in range(30):
        await world.write([(partition, 20) for partition in range(5)])
    splits = [world.split(partition) for partition in range(5)]
    reading = source(world, splits, window=100)
    assert await reading.next() is not None
    await reading.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_of_a_later_window_comes_in_its_turn() -> None:
    world = World(page=1)
    for _ in range(6):
        await world.write([(0, 10)])
    gone = ObjectKey.parse(world.batches[0][-1].object_key)
    await world.store.delete_many([gone])
    reading = source(world, [world.split(0)], window=1)
    for _ in range(5):
        assert await reading.next() is not None
    with pytest.raises(StorageError):
        await reading.next()
    await reading.close()


async def test_nothing_to_read() -> None:
    world = World()
    reading = source(world, [])
    assert await reading.next() is None
    assert await reading.next() is None
    await reading.close()
