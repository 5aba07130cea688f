"""A prune drops a limited number of batches at a time, and ends when it gets no further."""

from __future__ import annotations

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.plane import PruneResult
from skylog.diskless.planes.pruning import Prunes, prune_in_steps
from skylog.kernel.errors import ErrorCode
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC, home

NONE = ErrorCode.NONE


async def test_a_step_drops_a_limited_number_of_batches() -> None:
    async with home() as opened:
        await opened.lead(0)
        runtime = opened.runtime()
        await runtime.submit(ask.CreatePartitions([(TOPIC, "a", [0, 1])]))
        for _ in range(5):
            await runtime.submit(ask.CommitFile(opened.file((T0, 3), (T1, 2))))

        async def prune(*requests: tuple[tuple[object, int], int], most: int) -> list[int]:
            asked = [(*partition, offset) for partition, offset in requests]
            results = await runtime.submit(ask.PruneTo(asked, most))  # type: ignore[arg-type]
            return [result.wal_start_offset for result in results]

        assert await prune((T0, 8), most=0) == [0]
        assert await prune((T0, 3), most=1) == [3]
        # Both share the limit; what is inside a batch costs nothing.
        assert await prune((T0, 13), (T1, 4), most=3) == [12 + 1, 0]
        assert await prune((T0, 14), (T1, 5), most=1) == [14, 2]
        assert await prune((T1, 5), most=1) == [5]
        assert await prune((T0, 15), (T1, 10), most=100) == [15, 10]
        infos = await runtime.find(ask.DescribeLogs([T0, T1]))
        assert [info.byte_size for info in infos] == [0, 0]


class Steps:
    """The answers of the steps, and what each was asked."""

    def __init__(self, *answers: list[PruneResult]) -> None:
        self.answers = list(answers)
        self.asked: list[list[int]] = []

    async def __call__(self, requests: Prunes) -> list[PruneResult]:
        self.asked.append([index for _, index, _ in requests])
        return self.answers.pop(0)


async def test_only_what_is_not_done_is_asked_for_again() -> None:
    refused = PruneResult(ErrorCode.NOT_COORDINATOR)
    steps = Steps(
        [PruneResult(NONE, 9), PruneResult(NONE, 4), refused, PruneResult(NONE, 0)],
        [PruneResult(NONE, 8), PruneResult(NONE, 0)],
        [PruneResult(NONE, 9), PruneResult(NONE, 5)],
        [refused],
    )
    results = await prune_in_steps([(TOPIC, index, 9) for index in range(4)], steps)
    assert results == [PruneResult(NONE, 9), PruneResult(NONE, 9), refused, refused]
    assert steps.asked == [[0, 1, 2, 3], [1, 3], [1, 3], [3]]


async def test_a_prune_that_gets_no_further_ends() -> None:
    stuck = [PruneResult(NONE, 4)]
    steps = Steps(stuck, stuck)
    assert await prune_in_steps([(TOPIC, 0, 9)], steps) == stuck
    assert len(steps.asked) == 2
    assert await prune_in_steps([], Steps([])) == []
