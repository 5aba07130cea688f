"""How a node goes down: what was started last is stopped first, and every step has an end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from skylog.kernel import limits
from skylog.kernel.waiting import give_up_after


class Undo(contextlib.AsyncExitStack):
    """The steps of a shutdown. One that takes too long is given up, and the next has its turn."""

    def stop_by(
        self,
        step: Callable[[], Coroutine[Any, Any, Any]],
        seconds_max: float = limits.STOP_STEP_SECONDS_MAX,
    ) -> None:
        """Have ``step`` done on the way down."""
        name = getattr(step, "__qualname__", repr(step))
        self.push_async_callback(lambda: give_up_after(seconds_max, name, step()))
