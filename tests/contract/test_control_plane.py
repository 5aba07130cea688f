"""One suite for all control planes; ``stages.py`` says how a plane joins it."""

from __future__ import annotations

import pytest

from skylog.kernel.clock import ManualClock
from tests.contract import (
    plane_commits,
    plane_deletes,
    plane_duties,
    plane_inspection,
    plane_pins,
    plane_ranges,
    plane_reads,
)
from tests.contract.stages import STAGES, Stage
from tests.contract.support import CHECKS, RULES, Check, Scene

PARTS = (
    plane_commits,
    plane_reads,
    plane_deletes,
    plane_duties,
    plane_inspection,
    plane_ranges,
    plane_pins,
)


def stage_params() -> list[object]:
    return [pytest.param(s, id=name, marks=s.marks) for name, s in STAGES.items()]


@pytest.mark.parametrize("stage", stage_params())
@pytest.mark.parametrize("check", [pytest.param(c, id=name) for name, c in CHECKS.items()])
async def test_contract(stage: Stage, check: Check) -> None:
    # DC-10 DC-11 DC-12 DC-14 DC-15 DC-19
    # DC-06 partly, DC-07 partly, DC-08 partly, DC-09 partly, DC-17 partly, ENG-61 partly
    clock = ManualClock()
    async with stage.open(clock, RULES) as (plane, another):
        scene = Scene(plane, clock, another)
        await scene.create()
        await check(scene)


def test_every_part_is_in_the_suite() -> None:
    assert {check.__module__ for check in CHECKS.values()} == {part.__name__ for part in PARTS}
