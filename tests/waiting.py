"""Waiting by polling, where there is no notification."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# Longer than anything takes on a busy machine.
SECONDS_MAX = 120.0


def until(found: Callable[[], T], what: str = "") -> T:
    """Call until the result is true, and return it."""
    end = time.monotonic() + SECONDS_MAX
    while not (answer := found()):
        assert time.monotonic() < end, what or f"still {answer!r}"
        time.sleep(0.01)
    return answer


async def eventually(found: Callable[[], T], what: str = "") -> T:
    """The same for work on the test's own event loop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS_MAX
    while not (answer := found()):
        assert loop.time() < end, what or f"still {answer!r}"
        await asyncio.sleep(0.001)
    return answer
