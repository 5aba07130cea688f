"""Waiting requests: for the high watermark (``Pending``), or for a later answer (parked).

A reply waits for the log end that its ``handle`` saw, so it never shows what could still be lost.
Log ends only grow, so the queue is ordered and replies are sent in the order of their requests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.lifecycle import Refusals


@dataclass(slots=True, eq=False)
class Waiter:
    """One caller; ``appended`` says whether its request has appended anything to the log."""

    future: asyncio.Future[Any]
    appended: bool = False
    # When it began to wait for the high watermark, on the caller's clock.
    since: float = 0.0

    def settle(self, outcome: Any) -> None:
        if self.future.done():  # the caller was cancelled
            return
        if isinstance(outcome, KafkaError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Pending:
    """All waiting callers of one machine."""

    def __init__(self) -> None:
        self._line: deque[tuple[int, Waiter, Any]] = deque()
        self._parked: dict[Any, list[Waiter]] = {}
        self._parked_count = 0

    def __len__(self) -> int:
        return len(self._line) + self._parked_count

    def add(self, end_offset: int, waiter: Waiter, outcome: Any, since: float = 0.0) -> None:
        waiter.since = since
        self._line.append((end_offset, waiter, outcome))

    def park(self, key: Any, waiter: Waiter) -> None:
        self._parked.setdefault(key, []).append(waiter)
        self._parked_count += 1

    def answer(self, key: Any, end_offset: int, outcome: Any, since: float) -> None:
        """Every request parked under ``key`` gets ``outcome``: the first one and any resent."""
        waiters = self._parked.pop(key, ())
        self._parked_count -= len(waiters)
        for waiter in waiters:
            self.add(end_offset, waiter, outcome, since)

    def forget(self, key: Any, waiter: Waiter) -> None:
        """The caller of a parked request was cancelled."""
        waiters = self._parked.get(key)
        if waiters is None or waiter not in waiters:
            return
        waiters.remove(waiter)
        self._parked_count -= 1
        if not waiters:
            del self._parked[key]

    def release(self, high_watermark: int) -> None:
        while self._line and self._line[0][0] <= high_watermark:
            _, waiter, outcome = self._line.popleft()
            waiter.settle(outcome)

    def expire(self, since_max: float, code: ErrorCode) -> None:
        """Time out callers that began to wait by then: what they wrote may still take effect."""
        while self._line and self._line[0][1].since <= since_max:
            waiter = self._line.popleft()[1]
            waiter.settle(KafkaError(code, ambiguous=waiter.appended))

    @property
    def oldest(self) -> float | None:
        """When the oldest caller began to wait for the high watermark."""
        return self._line[0][1].since if self._line else None

    def fail_all(self, refusals: Refusals) -> None:
        """The machine is unloaded."""
        line, parked = self._line, self._parked
        self._line, self._parked, self._parked_count = deque(), {}, 0
        waiters = [entry[1] for entry in line]
        waiters += [waiter for parked_here in parked.values() for waiter in parked_here]
        for waiter in waiters:
            waiter.settle(refusals.unloaded(appended=waiter.appended))
