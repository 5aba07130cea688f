"""Reading tiered segments straight from their store, and what happens where that is impossible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skylog.bulk.errors import DataLossError
from skylog.client.bulk import Region
from skylog.objects.store import NotFound, ObjectError, Outcome
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from tests.unit.bulk.test_bucket import expected, source, values
from tests.unit.bulk.tiered_world import CHUNK_BYTES, TieredWorld

SIZES = [3, 1, 8, 2, 5, 1, 1, 9]
COUNT = sum(SIZES)


def layouts() -> list[Layout]:
    return [AivenLayout(chunk_size=CHUNK_BYTES), LocalTieredLayout()]


@pytest.mark.parametrize("layout", layouts(), ids=["aiven", "kafka-local"])
@pytest.mark.parametrize("window", [1, 500, 1 << 20])
async def test_both_tiers_are_one_log(layout: Layout, window: int) -> None:
    world = TieredWorld(layout=layout)
    for partition in range(2):
        await world.tier(partition, SIZES)
        await world.tier(partition, SIZES, extent_bytes=1)
    base = 2 * COUNT
    await world.write([(0, 4), (1, 6), (0, 3)])
    splits = [world.split(0), world.split(1)]
    found = await values(source(world, splits, window=window))
    assert found == expected(0, 0, base + 7) + expected(1, 0, base + 6)
    assert not world.fetched
    # Any range, however it cuts batches, segments and tiers.
    for start, end in ((0, 1), (5, 6), (COUNT - 1, COUNT + 1), (7, base + 1), (base - 1, base + 7)):
        assert await values(source(world, [world.split(0, start, end)])) == expected(0, start, end)
    parts = [world.split(0, at, at + 1) for at in range(base + 7)]
    assert await values(source(world, parts, window=window)) == expected(0, 0, base + 7)


async def test_compressed_chunks_are_decompressed() -> None:
    world = TieredWorld()
    await world.tier(0, SIZES, compressed=True)
    assert await values(source(world, [world.split(0, 4, 25)])) == expected(0, 4, 25)


async def test_wrong_bytes_are_read_again_and_then_fetched() -> None:
    world = TieredWorld()
    segment = await world.tier(0, SIZES, extent_bytes=1 << 20)
    key = world.layout.log_key(segment).text
    world.tiered_store.garbled[key] = 1
    assert await values(source(world, [world.split(0)])) == expected(0, 0, COUNT)
    assert not world.fetched
    world.tiered_store.garbled[key] = 100
    assert await values(source(world, [world.split(0, 2, 20)])) == expected(0, 2, 20)
    assert world.fetched == [(0, 2, 20)]


@pytest.mark.parametrize(
    "change",
    [
        {"object_key": "t/../../etc/passwd"},
        {"byte_offset": -1},
        {"byte_size": 1 << 30},
        {"byte_size": 7},
        {"segment_size": 5},
        {"base_offset": 2},
        {"last_offset": COUNT + 3},
        {"byte_offset": 10},
    ],
)
async def test_nothing_that_a_broker_says_is_believed(change: dict[str, object]) -> None:
    world = TieredWorld()
    await world.tier(0, SIZES, extent_bytes=1 << 20)
    world.tiers[0] = [replace(one, **change) for one in world.tiers[0]]  # type: ignore[arg-type]
    split = replace(world.split(0, 2, COUNT))
    assert await values(source(world, [split])) == expected(0, 2, COUNT)
    exact = change == {"base_offset": 2}
    assert world.fetched == ([] if exact else [(0, 2, COUNT)])


async def test_another_partition_s_segment_is_refused() -> None:
    world = TieredWorld()
    await world.tier(0, SIZES, extent_bytes=1 << 20)
    await world.tier(1, SIZES, extent_bytes=1 << 20)
    world.tiers[0] = world.tiers[1]
    assert await values(source(world, [world.split(0)])) == expected(0, 0, COUNT)
    assert world.fetched == [(0, 0, COUNT)]


async def test_a_store_that_is_away_is_not_tried_for_each_range() -> None:
    world = TieredWorld()
    segment = await world.tier(0, SIZES)
    key = world.layout.log_key(segment).text
    ranges = len(world.tiers[0])
    assert ranges > 4
    away = [ObjectError("away", Outcome.NOT_DONE) for _ in range(100)]
    world.tiered_store.failures[key] = away
    assert await values(source(world, [world.split(0)], window=1)) == expected(0, 0, COUNT)
    assert len(world.fetched) == ranges
    assert len(away) > 100 - ranges
    world.fetched.clear()
    world.reachable = False
    assert await values(source(world, [world.split(0)])) == expected(0, 0, COUNT)
    assert len(world.fetched) == ranges


async def test_what_is_only_with_brokers_is_fetched() -> None:
    world = TieredWorld()
    await world.tier(0, SIZES)
    world.tiers[0] = [
        replace(one, object_key="", region=Region.BROKER) if number % 2 else one
        for number, one in enumerate(world.tiers[0])
    ]
    assert await values(source(world, [world.split(0)])) == expected(0, 0, COUNT)
    assert len(world.fetched) == len(world.tiers[0]) // 2


async def test_what_was_pruned_since_is_found_in_a_segment() -> None:
    """The plan, and even the locations, are older than the prune."""
    world = TieredWorld()
    key = await world.write([(0, 4), (0, 6)])
    stale = await world.locate(world.split(0), 0)
    batches = world.batches.pop(0)
    await world.tier(0, [4, 6])
    await world.store.delete_many([key])
    asked = []

    async def locate_once(split: object, position: int) -> object:
        asked.append(position)
        return stale if len(asked) == 1 else await TieredWorld.locate(world, split, position)  # type: ignore[arg-type]

    world.locate = locate_once  # type: ignore[method-assign,assignment]
    assert await values(source(world, [world.split(0, 0, 10)])) == expected(0, 0, 10)
    assert len(batches) == 2
    assert len(asked) > 1


async def test_a_segment_that_is_gone_is_located_again() -> None:
    world = TieredWorld()
    segment = await world.tier(0, SIZES, extent_bytes=1 << 20)
    key = world.layout.log_key(segment).text
    world.tiered_store.failures[key] = [NotFound("moved")]
    assert await values(source(world, [world.split(0)])) == expected(0, 0, COUNT)
    assert world.located == [(0, 0), (0, 0)]
    # Deleted by retention: that is a loss, as it is of WAL objects.
    world.tiered_store.failures[key] = [NotFound("deleted")] * 9
    world.log_start[0] = 0
    assert await values(source(world, [world.split(0)])) == expected(0, 0, COUNT)
    assert world.fetched == [(0, 0, COUNT)]


async def test_offsets_that_nobody_locates_are_lost() -> None:
    world = TieredWorld()
    await world.tier(0, SIZES)
    del world.tiers[0][1]
    with pytest.raises(DataLossError, match="nowhere located"):
        await values(source(world, [world.split(0)]))
    left = await values(source(world, [world.split(0)], fails=False))
    assert 0 < len(left) < COUNT
