"""Delays commits briefly so that several enter the cache together: each transaction is costly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skylog.diskless.coordinator.turn import Turn
from skylog.kernel.limits import DISKLESS_GATHERED_SECONDS_MAX


class Gathering:
    """``wake`` is called when the delay is over."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    def leave(self, turn: Turn) -> None:
        """Remove from a turn the commits that can still wait."""
        if self._is_over or not turn.committed or not turn.may_gather:
            return
        turn.committed = ()
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(DISKLESS_GATHERED_SECONDS_MAX, self._end)

    def begin(self) -> None:
        """Reset: nothing waits."""
        self._is_over = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._is_over = True
        self._wake()
