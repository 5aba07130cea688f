"""How late the event loop runs: almost everything a node does is delayed by as much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.broker.observe.stages import buckets_of
from skylog.kernel.clock import Clock
from skylog.kernel.stages import Stage

INTERVAL_SECONDS: Final = 0.5


class LoopLag(Collector):
    """Sleeps repeatedly, and records how late it was woken."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._late = Stage(clock)

    async def sample(self) -> None:
        due = self._clock.monotonic() + INTERVAL_SECONDS
        await asyncio.sleep(INTERVAL_SECONDS)
        self._late.succeeded(due)

    def collect(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(
            "skylog_event_loop_lag_seconds",
            "Delay of the event loop: how late it runs what is due, sampled twice a second.",
            buckets=buckets_of(self._late),
            sum_value=self._late.seconds,
        )
