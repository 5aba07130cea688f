"""Timers as a port, so that a simulator can drive them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A started timer."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """Starts timers; an action runs once, on the event loop."""

    def start(self, delay_ms: int, action: Callable[[], None]) -> Timer: ...


class LoopTimers:
    """Timers of the running event loop."""

    def start(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, action)
