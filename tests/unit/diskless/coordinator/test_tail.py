"""The in-memory tail: it answers as the state would, or not at all, and stays small."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from skylog.diskless.batch import Extent, Stamp
from skylog.diskless.coordinator import following
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.tail import Added, Changed, NotInTail, Tail
from skylog.diskless.plane import FindRequest
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.ids import Uuid
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC, Home, home

OTHER = Uuid(b"topic-b---------")
PARTITIONS = (T0, T1, (OTHER, 0))
CREATE = ask.CreatePartitions([(TOPIC, "a", [0, 1]), (OTHER, "b", [0])])
LIMIT = 8


def added(*bases: int) -> Added:
    """A commit of one record a batch."""
    batches = [
        (Extent(object_key="k", byte_offset=base * 100, byte_size=100), Stamp(base, base))
        for base in bases
    ]
    return Added("k", 7, batches)


def committed(*bases: int, start: int = 0) -> dict[Any, Changed]:
    return {
        T0: Changed(LogState(log_start_offset=start, high_watermark=bases[-1] + 1), [added(*bases)])
    }


def found(tail: Tail, offset: int) -> list[int]:
    return [one.stamp.base_offset for one in tail.batches(T0, offset)]


def test_it_knows_what_it_was_told_and_nothing_before() -> None:
    tail = Tail(10)
    with pytest.raises(NotInTail):
        tail.log(T0)
    tail.follow(committed(5, 6), ())
    assert tail.log(T0).high_watermark == 7
    assert found(tail, 5) == [5, 6]
    assert found(tail, 6) == [6]
    with pytest.raises(NotInTail):
        found(tail, 4)
    tail.follow(committed(7), ())
    assert found(tail, 6) == [6, 7]
    tail.follow({T0: Changed(LogState(log_start_offset=7, high_watermark=8))}, ())
    assert tail.log(T0).log_start_offset == 7
    assert len(tail) == 1
    with pytest.raises(NotInTail):
        found(tail, 6)
    tail.follow({}, [TOPIC])
    with pytest.raises(NotInTail):
        tail.log(T0)
    assert len(tail) == 0


def test_a_gap_restarts_the_tail() -> None:
    tail = Tail(10)
    tail.follow(committed(0, 1), ())
    tail.follow(committed(5), ())
    assert found(tail, 5) == [5]
    with pytest.raises(NotInTail):
        found(tail, 1)
    # A state that is ahead of the tail is not used.
    tail.follow({T0: Changed(LogState(high_watermark=9), [added(6)])}, ())
    with pytest.raises(NotInTail):
        tail.log(T0)


def test_the_oldest_go_first_and_nothing_is_left_of_what_is_gone() -> None:
    tail = Tail(4)
    for base in range(10):
        tail.follow(committed(base), ())
    assert len(tail) == 4
    assert found(tail, 6) == [6, 7, 8, 9]
    with pytest.raises(NotInTail):
        found(tail, 5)
    for base in range(10, 1_000):
        tail.follow(committed(base, start=base), ())
    assert len(tail) == 1
    assert len(tail._order) <= 4


async def _step(opened: Home, runtime: Any, rng: random.Random) -> None:
    partition = rng.choice(PARTITIONS)
    kind = rng.random()
    if kind < 0.7:
        placed = [(rng.choice(PARTITIONS), rng.randint(1, 3)) for _ in range(rng.randint(1, 4))]
        await runtime.submit(ask.CommitFile(opened.file(*placed)))
    elif kind < 0.8:
        log = runtime.machine.state.log(partition)
        if log is not None:
            offset = rng.randint(log.log_start_offset, log.high_watermark)
            await runtime.submit(ask.DeleteRecords([(*partition, offset)]))
    elif kind < 0.9:
        log = runtime.machine.state.log(partition)
        if log is not None:
            await runtime.submit(ask.PruneTo([(*partition, log.high_watermark // 2)]))
    elif kind < 0.93:
        await runtime.submit(ask.DeleteTopics([partition[0]]))
        await runtime.submit(CREATE)


@pytest.mark.parametrize("seed", range(20))
async def test_finds_are_the_same_with_and_without_the_tail(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "DISKLESS_TAIL_BATCHES_MAX", LIMIT)
    rng = random.Random(seed)
    async with home(in_memory=True) as opened:
        await opened.lead(0)
        runtime = opened.runtime()
        await runtime.submit(CREATE)
        asked = []

        def counted(line: Any, request: Any) -> Any:
            asked.append(request)
            return enqueue(line, request)

        enqueue = runtime._enqueue
        monkeypatch.setattr(runtime, "_enqueue", counted)
        finds = 0
        for _ in range(60):
            await asyncio.gather(*(_step(opened, runtime, rng) for _ in range(rng.randint(1, 4))))
            machine = runtime.machine
            assert machine is not None
            answers = []
            for _ in range(5):
                wanted = [
                    FindRequest(*partition, rng.randint(-1, 40), rng.choice([1, 150, 1000]))
                    for partition in rng.sample(PARTITIONS, rng.randint(1, 3))
                ]
                request = ask.FindBatches(wanted, rng.choice([0, 100, 1000]), rng.choice([0, 2]))
                answers.append((request, await runtime.find(request)))
                finds += 1
            await runtime.caught_up()
            for request, answer in answers:
                assert answer == machine.find(request)
        to_the_state = sum(isinstance(request, ask.FindBatches) for request in asked)
        assert 0 < to_the_state < finds


async def test_an_acknowledged_commit_is_found() -> None:
    async with home(in_memory=True) as opened:
        await opened.lead(0)
        runtime = opened.runtime()
        await runtime.submit(CREATE)
        await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        opened.partitions[0].held = True
        commit = asyncio.ensure_future(runtime.submit(ask.CommitFile(opened.file((T0, 1)))))
        for _ in range(50):  # appended and synced, and waiting for the high watermark
            await asyncio.sleep(0)
        request = ask.FindBatches([FindRequest(*T0, 0, 1000)], 1000)
        assert (await runtime.find(request))[0].high_watermark == 1
        opened.partitions[0].commit()  # acknowledged, and not yet applied
        assert (await runtime.find(request))[0].high_watermark == 2
        await commit
