"""The shutdown of a node: parts are stopped in reverse order, and every step has a time limit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from skylog.kernel import limits
from skylog.kernel.waiting import give_up_after


class Undo(contextlib.AsyncExitStack):
    """The steps of a shutdown. One that takes too long is abandoned, and the next one runs."""

    def stop_by(
        self,
        step: Callable[[], Coroutine[Any, Any, Any]],
        seconds_max: float = limits.STOP_STEP_SECONDS_MAX,
    ) -> None:
        """Run ``step`` at shutdown."""
        name = getattr(step, "__qualname__", repr(step))
        self.push_async_callback(lambda: give_up_after(seconds_max, name, step()))
