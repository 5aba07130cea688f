"""Recurring work: how often it ran and failed, how long it took, when it last succeeded.

A growing age of the last success is the first sign that something is stuck.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from skylog.kernel.clock import Clock

# Seconds, from a read of memory to a pass over a large bucket.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5, 10, 60, 600)


class Stage:
    """One kind of such work. ``timed`` is False if its duration means nothing."""

    def __init__(self, clock: Clock, *, timed: bool = True) -> None:
        self.timed = timed
        self.runs = 0
        self.errors = 0
        self.seconds = 0.0
        # How many took at most as long as each bound; the last entry counts all longer ones.
        self.buckets = [0] * (len(BOUNDS) + 1)
        self._clock = clock
        self._last_success = clock.monotonic()

    @property
    def age_seconds(self) -> float:
        """Since the last success; since the start if there was none."""
        return max(0.0, self._clock.monotonic() - self._last_success)

    def begin(self) -> float:
        """The start time to pass to ``succeeded`` and ``failed``."""
        return self._clock.monotonic()

    def succeeded(self, began: float) -> None:
        self._last_success = self._ended(began)

    def failed(self, began: float) -> None:
        self.errors += 1
        self._ended(began)

    def _ended(self, began: float) -> float:
        now = self._clock.monotonic()
        seconds = max(0.0, now - began)
        self.runs += 1
        self.seconds += seconds
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        return now

    @contextmanager
    def run(self) -> Iterator[None]:
        """An exception is a failure; cancellation does not count."""
        began = self.begin()
        try:
            yield
        except Exception:
            self.failed(began)
            raise
        self.succeeded(began)
