from __future__ import annotations

import pytest

from skylog.diskless.files.passes import BACKOFF_MS_MAX, PacedPass
from skylog.kernel.clock import ManualClock
from skylog.objects.store import ObjectError, Outcome


class Work:
    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    async def run_once(self) -> None:
        self.calls += 1
        if self.fails:
            raise ObjectError("down", Outcome.NOT_DONE)


async def turns(paced: PacedPass, clock: ManualClock, count: int) -> None:
    for _ in range(count):
        clock.advance(1_000)
        await paced.run()


async def test_a_failing_pass_is_tried_less_and_less_often() -> None:
    clock, work = ManualClock(), Work()
    paced = PacedPass("work", work, clock, 1_000)
    work.fails = True
    await turns(paced, clock, 63)
    assert work.calls == 6  # at turns 1, 2, 4, 8, 16, 32
    assert (paced.stage.runs, paced.stage.errors) == (6, 6)
    assert paced.stage.age_seconds == pytest.approx(63)


async def test_success_brings_back_the_usual_pace() -> None:
    clock, work = ManualClock(), Work()
    paced = PacedPass("work", work, clock, 1_000)
    work.fails = True
    await turns(paced, clock, 20)
    work.fails = False
    clock.advance(BACKOFF_MS_MAX)
    calls = work.calls
    await turns(paced, clock, 3)
    assert work.calls == calls + 3
    assert paced.stage.age_seconds == 0


async def test_the_longest_rest_is_bounded() -> None:
    clock, work = ManualClock(), Work()
    paced = PacedPass("work", work, clock, 60_000)
    work.fails = True
    for _ in range(40):
        clock.advance(BACKOFF_MS_MAX)
        await paced.run()
    assert work.calls == 40


async def test_a_daily_pass_that_failed_is_not_left_for_tomorrow() -> None:
    clock, work = ManualClock(), Work()
    paced = PacedPass("work", work, clock, 24 * 3_600_000)
    work.fails = True
    await paced.run()
    work.fails = False
    for _ in range(100):
        clock.advance(paced.turn_ms)
        await paced.run()
    assert work.calls == 2


async def test_the_first_pass_and_unwanted_ones() -> None:
    clock, work = ManualClock(), Work()
    wanted = False
    paced = PacedPass("work", work, clock, 1_000, first_ms=5_000, wanted=lambda: wanted)
    await turns(paced, clock, 10)
    assert work.calls == 0
    wanted = True
    await turns(paced, clock, 2)
    assert work.calls == 2
