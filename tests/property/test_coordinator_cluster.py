"""Messages between brokers are lost, duplicated and delayed, while coordinators move to leaders
that lack what was not replicated: nothing is lost, and nothing is committed twice."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skylog.diskless.plane import CommitResult, FileToCommit, FindRequest, TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from tests.contract.support import PLENTY, T0, T1, TOPIC
from tests.property.test_control_plane_histories import Model
from tests.unit.diskless.cluster_world import Faults, World, until_known, world

BROKERS, COORDINATORS = 3, 2
SEEDS = 60
PARTITIONS = (T0, T1)


def draw_faults(rng: random.Random) -> Faults:
    """Each seed has some kinds of faults."""
    return Faults(
        lost=rng.choice((0, 0.1, 0.3)),
        answer_lost=rng.choice((0, 0.1, 0.3)),
        twice=rng.choice((0, 0.2, 0.5)),
        late=rng.choice((0, 0.3)),
    )


async def played(seed: int, story: Callable[[World, random.Random], Awaitable[None]]) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        opening = world(
            Path(directory),
            BROKERS,
            lambda partition: partition[1] % COORDINATORS,
            seed=seed,
            lagging=rng.random() < 0.7,
        )
        async with opening as opened:
            for number in range(COORDINATORS):
                await opened.lead(number, rng.randrange(BROKERS))
            await opened.members[0].plane.create_partitions([(TOPIC, "a", 2)])
            opened.faults = draw_faults(rng)
            await story(opened, rng)


def random_file(opened: World, rng: random.Random, node: int, **more: Any) -> FileToCommit:
    batches = [(rng.choice(PARTITIONS), rng.randrange(1, 4)) for _ in range(rng.randrange(1, 4))]
    owners = sorted({partition[1] % COORDINATORS for partition, _ in batches})
    return opened.members[node].home.file(*batches, owners=owners, **more)


async def commit(plane: Any, file: FileToCommit) -> list[CommitResult]:
    """As the writer does: commit each coordinator's part separately until its outcome is known."""
    results: dict[int, CommitResult] = {}

    async def part(coordinator_id: int) -> None:
        places = [
            n for n, b in enumerate(file.batches) if b.partition % COORDINATORS == coordinator_id
        ]
        mine = replace(file, batches=[file.batches[place] for place in places])
        told = await until_known(lambda: plane.commit_part(mine, coordinator_id))
        results.update(zip(places, told, strict=True))

    await asyncio.gather(*(part(coordinator_id) for coordinator_id in file.coordinator_ids))
    return [results[place] for place in range(len(file.batches))]


async def move(opened: World, rng: random.Random) -> None:
    await opened.lead(rng.randrange(COORDINATORS), rng.randrange(BROKERS))


async def logs(opened: World) -> dict[TopicPartition, list[tuple[int, int, str]]]:
    """The final logs, as every broker shows them."""
    opened.faults = Faults()
    await opened.settled()
    told = []
    for member in opened.members:
        requests = [FindRequest(*partition, 0, PLENTY) for partition in PARTITIONS]
        found = await member.plane.find_batches(requests, PLENTY)
        assert [one.error for one in found] == [ErrorCode.NONE] * len(PARTITIONS)
        told.append(
            {
                partition: [(*b.stamp[:2], b.extent.object_key) for b in one.batches]
                for partition, one in zip(PARTITIONS, found, strict=True)
            }
        )
    assert all(one == told[0] for one in told)
    return told[0]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_one_writer_as_the_model_says(seed: int) -> None:
    """Every answer is that of a plane without faults."""
    # DC-12 partly

    async def story(opened: World, rng: random.Random) -> None:
        model, files = Model(), []
        for _ in range(25):
            if rng.random() < 0.15:
                await move(opened, rng)
            node = rng.randrange(BROKERS)
            if files and rng.random() < 0.2:
                file = rng.choice(files)
            else:
                file = random_file(opened, rng, node)
                files.append(file)
            plane = opened.members[node].plane
            results = await commit(plane, file)
            told = [(one.error, one.assigned_base_offset) for one in results]
            assert told == model.commit(file)
            if rng.random() < 0.1:
                partition = rng.choice(PARTITIONS)
                offset = rng.randrange(model.ends[partition] + 1)
                await until_known(lambda p=plane, at=partition, o=offset: delete(p, at, o))
                model.delete(partition, offset)
        live = {partition: model.live(partition) for partition in PARTITIONS}
        opened.faults = Faults()
        await opened.settled()
        for member in opened.members:
            for partition, expected in live.items():
                request = FindRequest(*partition, model.starts[partition], PLENTY)
                (found,) = await member.plane.find_batches([request], PLENTY)
                batches = [(*b.stamp[:2], b.extent.object_key) for b in found.batches]
                assert batches == expected

    asyncio.run(played(seed, story))


async def delete(plane: Any, partition: TopicPartition, offset: int) -> None:
    (result,) = await plane.delete_records([(*partition, offset)])
    if result.error:
        raise KafkaError(result.error)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_many_writers_lose_nothing_and_commit_nothing_twice(seed: int) -> None:
    """Each broker's writer has one file in flight; offsets are dense and as acknowledged."""

    async def story(opened: World, rng: random.Random) -> None:
        committed: dict[str, tuple[FileToCommit, list[CommitResult]]] = {}

        async def write(node: int, own: random.Random) -> None:
            for _ in range(8):
                file = random_file(opened, own, node)
                results = await commit(opened.members[node].plane, file)
                committed[file.object_key] = file, results
                await asyncio.sleep(0)

        async def nemesis() -> None:
            for _ in range(4):
                for _ in range(rng.randrange(60)):
                    await asyncio.sleep(0)
                await move(opened, rng)

        writers = [write(node, random.Random(seed * 10 + node)) for node in range(BROKERS)]
        await asyncio.gather(*writers, nemesis())
        there = await logs(opened)
        for batches in there.values():
            ends = [0, *(last + 1 for _, last, _ in batches)]
            assert [base for base, _, _ in batches] == ends[:-1]  # dense
        for key, (file, results) in committed.items():
            for partition in PARTITIONS:
                mine = [
                    (
                        one.assigned_base_offset,
                        one.assigned_base_offset + batch.stamp.record_count - 1,
                        key,
                    )
                    for batch, one in zip(file.batches, results, strict=True)
                    if batch.topic_partition == partition
                ]
                assert [one for one in there[partition] if one[2] == key] == mine

    asyncio.run(played(seed, story))
