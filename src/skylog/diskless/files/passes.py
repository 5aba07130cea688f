"""Maintenance in passes: each kind has its own interval and statistics, and backs off after
failures.

Only totals are kept between passes: the control plane knows what is left to do, so the next pass
completes an interrupted one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from skylog.kernel.clock import Clock
from skylog.kernel.errors import KafkaError, StorageError
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.objects.store import ObjectError

_log = get_logger("diskless.files")
# A store or plane that is down is not called more often than this, however short the interval.
BACKOFF_MS_MAX: Final = 15 * 60 * 1000
# A daily pass that failed is retried sooner than the next day.
TURN_MS_MAX: Final = 60_000
# Tolerance for timers that fire early: the pass must not wait for its next turn.
_EARLY_MS: Final = 5
Sleep: TypeAlias = Callable[[float], Awaitable[object]]


class Pass(Protocol):
    async def run_once(self) -> None:
        """One complete pass; raises if it cannot be completed now."""


class PacedPass:
    """Runs a pass when it is due: an interval after the last one, sooner after a failure."""

    def __init__(
        self,
        name: str,
        work: Pass,
        clock: Clock,
        interval_ms: int,
        *,
        first_ms: int = 0,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """``first_ms`` is the delay of the first pass. If a pass is not ``wanted`` now, this is
        checked again later."""
        self.name = name
        self.stage = Stage(clock)
        self._failures_in_a_row = 0
        self._work = work
        self._clock = clock
        self._interval_ms = interval_ms
        self._wanted = wanted
        self._due = 0.0
        self._wait(first_ms)

    @property
    def turn_ms(self) -> int:
        """How often ``run`` should be called."""
        return min(self._interval_ms, TURN_MS_MAX)

    async def run(self) -> None:
        """Run a pass if it is due; a failure is only logged and counted."""
        if self._clock.monotonic() < self._due or not self._wanted():
            return
        try:
            with self.stage.run():
                await self._work.run_once()
        except (KafkaError, ObjectError, StorageError, TimeoutError) as error:
            self._failed(error)
        else:
            self._failures_in_a_row = 0
            self._wait(self._interval_ms)

    def _failed(self, error: Exception) -> None:
        # The first retry is in the next turn, the others after 2, 4, … turns.
        rest_ms = self.turn_ms * 2 ** min(self._failures_in_a_row, 16)
        self._failures_in_a_row += 1
        self._wait(min(rest_ms, BACKOFF_MS_MAX))
        _log.warning("pass failed", work=self.name, why=str(error) or type(error).__name__)

    def _wait(self, ms: int) -> None:
        self._due = self._clock.monotonic() + (ms - _EARLY_MS) / 1000


class Breather:
    """Rests as long as the previous step took: a pass uses at most half of any resource's time."""

    def __init__(self, clock: Clock, sleep: Sleep | None = None) -> None:
        self._clock = clock
        self._sleep = sleep or asyncio.sleep
        self._began = clock.monotonic()

    async def rest(self) -> None:
        await self._sleep(self._clock.monotonic() - self._began)
        self._began = self._clock.monotonic()
