"""Metrics of repeated work."""

from __future__ import annotations

import asyncio

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.stages import BOUNDS, Stage


def test_runs_errors_and_seconds() -> None:
    clock = ManualClock()
    stage = Stage(clock)
    for ms in (0, 2, 30, 700_000):
        with stage.run():
            clock.advance(ms)
    with pytest.raises(OSError, match="no"), stage.run():
        clock.advance(4)
        raise OSError("no")
    assert (stage.runs, stage.errors) == (5, 1)
    assert stage.seconds == pytest.approx(700.036)
    counted = dict(zip((*BOUNDS, None), stage.buckets, strict=True))
    assert {bound: count for bound, count in counted.items() if count} == {
        0.001: 1,
        0.0025: 1,
        0.005: 1,
        0.05: 1,
        None: 1,
    }


def test_the_age_grows_until_a_success() -> None:
    clock = ManualClock()
    stage = Stage(clock)
    clock.advance(2_000)
    assert stage.age_seconds == pytest.approx(2)  # since the start
    began = stage.begin()
    clock.advance(1_000)
    stage.failed(began)
    assert stage.age_seconds == pytest.approx(3)
    stage.succeeded(stage.begin())
    assert stage.age_seconds == 0


def test_a_cancelled_call_counts_neither_as_failure_nor_as_success() -> None:
    stage = Stage(ManualClock())
    with pytest.raises(asyncio.CancelledError), stage.run():
        raise asyncio.CancelledError
    assert (stage.runs, stage.errors) == (0, 0)
