"""When the active file is closed: by size, by age, or early when waiting cannot fill it.

A fixed interval makes a producer whose window is full wait for nothing. So a file closes as soon
as fewer uploads are under way than may overlap: whatever arrived in the same turn of the event loop
is in it, and what arrives while uploads run gathers in the next one. An object store that charges
for each upload limits early closing by a budget of uploads per second; size and age always close.
Pure: time is an argument.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

# Uploads that early closing lets overlap; more would only make the files smaller.
EARLY_UPLOADS_MAX: Final = 2
# A quiet second saves its uploads for a burst.
BURST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """The writer's part of the node's settings."""

    broker_id: int = -1
    buffer_bytes_max: int = 4 * 1024 * 1024
    interval_ms: int = 250
    adaptive: bool = True
    # Uploads per second that early closing may cause; infinite for a store that costs nothing.
    puts_per_second: float = math.inf
    inflight_bytes_max: int = 64 * 1024 * 1024
    upload_concurrency: int = 8
    commit_age_max_ms: int = 600_000


class Reason(Enum):
    """Why a file was closed."""

    SIZE = "size"
    AGE = "age"
    EARLY = "early"
    END = "end"


class PutBudget:
    """Tokens for uploads: so many per second, and at most a burst of them saved."""

    def __init__(self, per_second: float, now_ms: int) -> None:
        self._per_second = per_second
        self._capacity = max(per_second * BURST_SECONDS, 1.0)
        self._tokens = self._capacity
        self._filled_ms = now_ms

    def available(self, now_ms: int) -> bool:
        self._fill(now_ms)
        return self._tokens >= 1.0

    def spend(self, now_ms: int) -> None:
        """Every upload counts, also those that size and age caused."""
        self._fill(now_ms)
        self._tokens = max(self._tokens - 1.0, -self._capacity)

    def wait_ms(self, now_ms: int) -> int:
        """How long until there is a token."""
        self._fill(now_ms)
        if self._tokens >= 1.0:
            return 0
        return math.ceil((1.0 - self._tokens) / self._per_second * 1000)

    def _fill(self, now_ms: int) -> None:
        if math.isinf(self._per_second):
            self._tokens = self._capacity
            return
        passed = max(now_ms - self._filled_ms, 0)
        self._tokens = min(self._tokens + passed * self._per_second / 1000, self._capacity)
        self._filled_ms = now_ms


class ClosingPlan:
    """Decides about the one active file of a broker."""

    def __init__(self, settings: WriterSettings, now_ms: int) -> None:
        self._settings = settings
        self._budget = PutBudget(settings.puts_per_second, now_ms)

    def must_close_before(self, file_bytes: int, request_bytes: int) -> bool:
        """Whether a request would overfill a file that has something in it."""
        return file_bytes > 0 and file_bytes + request_bytes > self._settings.buffer_bytes_max

    def reason_to_close(
        self, file_bytes: int, opened_ms: int, uploads: int, now_ms: int
    ) -> Reason | None:
        """Why the file should be closed now; None: it waits."""
        if file_bytes >= self._settings.buffer_bytes_max:
            return Reason.SIZE
        if now_ms - opened_ms >= self._settings.interval_ms:
            return Reason.AGE
        if (
            self._settings.adaptive
            and uploads < EARLY_UPLOADS_MAX
            and self._budget.available(now_ms)
        ):
            return Reason.EARLY
        return None

    def look_again_ms(self, opened_ms: int, uploads: int, now_ms: int) -> int:
        """How long a file that stays open may stay so without another look."""
        left = max(opened_ms + self._settings.interval_ms - now_ms, 0)
        if self._settings.adaptive and uploads < EARLY_UPLOADS_MAX:
            return min(left, self._budget.wait_ms(now_ms))
        return left

    def closed(self, now_ms: int) -> None:
        self._budget.spend(now_ms)
