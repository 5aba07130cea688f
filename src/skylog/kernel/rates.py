"""Rates over sliding windows and token buckets, with Kafka's arithmetic.

A rate keeps a ring of samples. A sample is complete when a window has passed since its start; the
next event starts another, and reuses the oldest once there is one more than the configured windows:
that one overlaps the edge of the measured time. Time that has not passed yet counts as if it had,
so that the first event of a quiet client does not count as a burst.
"""

from __future__ import annotations

import math
from typing import Final

INT32_MAX: Final = 2**31 - 1


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """Events per second over the last ``samples`` windows of ``window_ms``."""

    __slots__ = ("_current", "_ring", "_samples", "_window_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._ring: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self._ring:
            self._ring.append(_Sample(now_ms))
        sample = self._ring[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._samples + 1)
        if self._current == len(self._ring):
            self._ring.append(_Sample(now_ms))
        else:
            self._ring[self._current].reset(now_ms)
        return self._ring[self._current]

    def measure(self, now_ms: int) -> float:
        """The rate per second."""
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(sample.value for sample in self._ring) / (elapsed_ms / 1000)

    def elapsed_ms(self, now_ms: int) -> int:
        """The time over which the rate is measured, at least all windows but one."""
        elapsed_ms = self._sampled_ms(now_ms)
        missing = self._samples - 1 - elapsed_ms // self._window_ms
        if missing > 0:
            elapsed_ms += missing * self._window_ms
        return max(elapsed_ms, 1)

    def _sampled_ms(self, now_ms: int) -> int:
        for sample in self._ring:
            if now_ms - sample.last_ms >= self._samples * self._window_ms:
                sample.reset(now_ms)
        if not self._ring:
            self._ring.append(_Sample(now_ms))
        return now_ms - min(sample.start_ms for sample in self._ring)


class SimpleRate(Rate):
    """The same over the time that has passed, at least one window: a burst counts as one."""

    __slots__ = ()

    def elapsed_ms(self, now_ms: int) -> int:
        return max(self._sampled_ms(now_ms), self._window_ms)


class TokenBucket:
    """Tokens that accumulate at the quota's rate, up to all windows' worth, and may be
    overdrawn."""

    __slots__ = ("_seconds", "_tokens", "_updated_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._seconds = samples * window_ms / 1000
        self._tokens = 0.0
        self._updated_ms = 0

    def record(self, value: float, quota: float, now_ms: int) -> None:
        tokens = self.measure(quota, now_ms)
        self._tokens = min(self._seconds * quota, tokens - value)

    def measure(self, quota: float, now_ms: int) -> float:
        """The tokens left; below zero the quota is exceeded."""
        gained = quota * (now_ms - self._updated_ms) / 1000
        self._tokens = min(self._seconds * quota, self._tokens + gained)
        self._updated_ms = now_ms
        return self._tokens


def throttle_ms(observed: float, quota: float, elapsed_ms: int) -> int:
    """How long to pause until the observed rate has fallen to the quota; 0 if it has."""
    if observed <= quota:
        return 0
    return rounded_ms((observed - quota) / quota * elapsed_ms if quota > 0 else INT32_MAX)


def rounded_ms(value: float) -> int:
    """Halves round up, as in Java; the response field has 32 bits."""
    return INT32_MAX if value >= INT32_MAX else math.floor(value + 0.5)
