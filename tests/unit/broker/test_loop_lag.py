"""The lag of the event loop is measured."""

from __future__ import annotations

import asyncio

import pytest

from skylog.broker.observe import loop_lag
from skylog.kernel.clock import ManualClock


async def test_late_wake_ups_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    lag = loop_lag.LoopLag(clock)

    async def sleep(seconds: float) -> None:
        clock.advance(int(1000 * seconds) + 200)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await lag.sample()
    (family,) = lag.collect()
    counts = {sample.labels.get("le"): sample.value for sample in family.samples}
    assert (counts["0.1"], counts["0.25"], counts["+Inf"]) == (0, 1, 1)
    (total,) = (each.value for each in family.samples if each.name.endswith("_sum"))
    assert total == pytest.approx(0.2)
