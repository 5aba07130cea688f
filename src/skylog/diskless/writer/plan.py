"""When the active file is closed: by size, by age, or early if waiting would not fill it.

A fixed interval would make a producer whose window is full wait needlessly. So a file is closed as
soon as it has as many requests as were recently in flight together: their senders are now waiting
for responses. If they do not arrive, the file waits for a fraction of the time that an upload and
its commit take anyway. Requests that arrive meanwhile are collected for half of that time, so that
at most two files overlap. For an object store that charges for each upload, a budget of uploads per
second limits early closing; size and age always close. Pure: time is an argument.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final

# Files that early closing lets overlap; more would only make them smaller.
EARLY_FILES_MAX: Final = 2
# How long a file waits for more, as a fraction of a file's duration: alone, and behind another.
ALONE_SHARE: Final = 0.25
BEHIND_SHARE: Final = 0.5
# Behind another file it pays to wait this long, however fast the store is: each file has a cost.
BEHIND_MS_MIN: Final = 5.0
# The weight of the latest file in the average duration.
LATEST_SHARE: Final = 0.5
# The number of files that show how many requests come together.
FILES_REMEMBERED: Final = 8
# A quiet second saves its uploads for a burst.
BURST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """The writer's part of the node's settings."""

    broker_id: int = -1
    buffer_bytes_max: int = 4 * 1024 * 1024
    interval_ms: int = 250
    adaptive: bool = True
    # Uploads per second that early closing may cause; infinite if uploads are free.
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
    """A token bucket for uploads: a rate per second, and a limited burst."""

    def __init__(self, per_second: float, now_ms: float) -> None:
        self._per_second = per_second
        self._capacity = max(per_second * BURST_SECONDS, 1.0)
        self._tokens = self._capacity
        self._filled_ms = now_ms

    def available(self, now_ms: float) -> bool:
        self._fill(now_ms)
        return self._tokens >= 1.0

    def spend(self, now_ms: float) -> None:
        """Every upload counts, also those caused by size and age."""
        self._fill(now_ms)
        self._tokens = max(self._tokens - 1.0, -self._capacity)

    def wait_ms(self, now_ms: float) -> int:
        """How long until there is a token."""
        self._fill(now_ms)
        if self._tokens >= 1.0:
            return 0
        return math.ceil((1.0 - self._tokens) / self._per_second * 1000)

    def _fill(self, now_ms: float) -> None:
        if math.isinf(self._per_second):
            self._tokens = self._capacity
            return
        passed = max(now_ms - self._filled_ms, 0)
        self._tokens = min(self._tokens + passed * self._per_second / 1000, self._capacity)
        self._filled_ms = now_ms


class ClosingPlan:
    """Decides when to close the active file of a broker.

    ``under_way``: earlier files that are not committed yet. ``requests``: all that wait for a
    response, including those in the file.
    """

    def __init__(self, settings: WriterSettings, now_ms: float) -> None:
        self._settings = settings
        self._budget = PutBudget(settings.puts_per_second, now_ms)
        self._file_ms = 0.0
        self._committed_ms = now_ms
        # The most requests that waited at once, for each recent file and since the last one.
        self._together: deque[int] = deque(maxlen=FILES_REMEMBERED)
        self._most = 0

    def reason_to_close(
        self, file_bytes: int, opened_ms: float, under_way: int, requests: int, now_ms: float
    ) -> Reason | None:
        """Why the file should be closed now; None: it stays open."""
        if file_bytes >= self._settings.buffer_bytes_max:
            return Reason.SIZE
        age_ms = now_ms - opened_ms
        if age_ms >= self._settings.interval_ms:
            return Reason.AGE
        if not self._settings.adaptive or not self._budget.available(now_ms):
            return None
        if under_way == 0 and self.is_complete(requests):
            return Reason.EARLY
        return Reason.EARLY if now_ms >= self._patient_until_ms(opened_ms, under_way) else None

    def is_complete(self, requests: int) -> bool:
        """Whether as many requests wait as recently at most; then no more are expected."""
        self._most = max(self._most, requests)
        return requests >= max(self._together, default=0)

    def look_again_ms(self, opened_ms: float, under_way: int, now_ms: float) -> float:
        """How long a file may stay open without another check."""
        left = opened_ms + self._settings.interval_ms - now_ms
        if self._settings.adaptive and under_way < EARLY_FILES_MAX:
            patience_ms = self._patient_until_ms(opened_ms, under_way) - now_ms
            left = min(left, max(patience_ms, self._budget.wait_ms(now_ms)))
        return max(left, 0)

    def _patient_until_ms(self, opened_ms: float, under_way: int) -> float:
        """When a file is closed in any case."""
        if under_way == 0:
            # Clients that were just answered get time to send again.
            return max(opened_ms, self._committed_ms) + ALONE_SHARE * self._file_ms
        if under_way < EARLY_FILES_MAX:
            return opened_ms + max(BEHIND_SHARE * self._file_ms, BEHIND_MS_MIN)
        return math.inf

    def closed(self, requests: int, now_ms: float) -> None:
        self._budget.spend(now_ms)
        self._together.append(max(self._most, requests))
        self._most = 0

    def committed(self, took_ms: float, now_ms: float) -> None:
        """The duration of a file from closing to its last response; outages do not count."""
        self._committed_ms = now_ms
        counted_ms = min(took_ms, self._settings.interval_ms)
        self._file_ms += LATEST_SHARE * (counted_ms - self._file_ms)
