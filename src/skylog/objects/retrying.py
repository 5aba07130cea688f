"""Retries failed requests: with jitter, within a budget that all requests share.

Every operation of the port may be repeated (see ``store``). If all attempts fail, the error covers
all of them: after one that may have taken effect, a later "not done" or "refused" proves nothing,
and the result is ambiguous.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.limits import OBJECT_PART_BYTES_MIN
from skylog.kernel.rng import Random, system_random
from skylog.objects.keys import ObjectKey
from skylog.objects.store import (
    AtHand,
    Exists,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
    Source,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how soon and how long to retry. Times are in seconds."""

    attempts_max: int = 6
    attempt_seconds_max: float = 30.0
    pause_seconds: float = 0.05
    pause_seconds_max: float = 5.0
    # The budget: each retry takes one, each success returns a tenth. If the store is down, requests
    # fail fast instead of multiplying the load that keeps it down.
    budget_max: float = 200.0
    budget_per_success: float = 0.1


class RetryBudget:
    """The retry budget that all requests share, and the pause of a throttled store."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._left = policy.budget_max
        self._rest_until = 0.0
        self._throttled_in_a_row = 0

    def succeeded(self) -> None:
        self._throttled_in_a_row = 0
        self._left = min(self._policy.budget_max, self._left + self._policy.budget_per_success)

    def take(self) -> bool:
        """Whether one more retry is allowed."""
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def throttled(self, now: float, share: float) -> None:
        """The store asked for fewer requests: all of them pause for a while, longer each time."""
        pause = min(
            self._policy.pause_seconds_max,
            self._policy.pause_seconds * 2.0**self._throttled_in_a_row,
        )
        self._throttled_in_a_row = min(self._throttled_in_a_row + 1, 16)
        self._rest_until = max(self._rest_until, now + pause * (0.5 + share / 2))

    def rest(self, now: float) -> float:
        return max(0.0, self._rest_until - now)


class _RestingAtHand:
    """Puts nothing while a throttled store rests; ``put`` waits for the end of the pause."""

    def __init__(self, inner: AtHand, budget: RetryBudget, clock: Clock) -> None:
        self._inner = inner
        self._budget = budget
        self._clock = clock
        self.get_now = inner.get_now

    def put_now(self, key: ObjectKey, data: Payload) -> bool:
        if self._budget.rest(self._clock.monotonic()) > 0 or not self._inner.put_now(key, data):
            return False
        self._budget.succeeded()
        return True


class RetryingStore(ObjectStore):
    """A store whose failed requests are retried."""

    def __init__(
        self,
        inner: ObjectStore,
        policy: RetryPolicy | None = None,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._policy = policy or RetryPolicy()
        self._clock = clock or SystemClock()
        self._rng = rng or system_random()
        self._sleep = sleep
        self.budget = RetryBudget(self._policy)
        at_hand = inner.at_hand
        self._at_hand = at_hand and _RestingAtHand(at_hand, self.budget, self._clock)

    @property
    def at_hand(self) -> AtHand | None:
        return self._at_hand

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        await self._repeat(
            f"put {key}", lambda: self._inner.put(key, data, if_absent=if_absent), Outcome.AMBIGUOUS
        )

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        """Repeated as a whole. An attempt has time for each of its parts."""
        await self._repeat(
            f"put {key}",
            lambda: self._inner.put_file(key, source, size),
            Outcome.AMBIGUOUS,
            requests=2 + size // OBJECT_PART_BYTES_MIN,
        )

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        async def whole() -> bytes:
            data = await self._inner.get(key, start, end)
            if end is not None and len(data) != end - start:
                raise ObjectError(
                    f"{key}: {len(data)} bytes instead of {end - start}", Outcome.NOT_DONE
                )
            return data

        return await self._repeat(f"get {key}", whole, Outcome.NOT_DONE)

    async def head(self, key: ObjectKey) -> ObjectInfo:
        return await self._repeat(f"head {key}", lambda: self._inner.head(key), Outcome.NOT_DONE)

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        await self._repeat(
            f"delete of {len(keys)}", lambda: self._inner.delete_many(keys), Outcome.AMBIGUOUS
        )

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        """Continues after the last object if a page fails."""
        seen = after
        found: AsyncIterator[ObjectInfo] | None = None

        async def step() -> ObjectInfo | None:
            nonlocal found
            if found is None:
                found = self._inner.list(prefix, seen)
            try:
                return await anext(found, None)
            except BaseException:
                found = None
                raise

        while (info := await self._repeat(f"list {prefix}", step, Outcome.NOT_DONE)) is not None:
            seen = info.key.text
            yield info

    async def close(self) -> None:
        await self._inner.close()

    async def _repeat(
        self,
        what: str,
        attempt: Callable[[], Awaitable[T]],
        late: Outcome,
        requests: int = 1,
    ) -> T:
        """``late`` is the outcome of an attempt that timed out."""
        seconds = self._policy.attempt_seconds_max * requests
        doubt = False
        for number in range(1, self._policy.attempts_max + 1):
            await self._rest()
            try:
                result = await _timed(what, attempt, late, seconds)
            except ObjectError as error:
                doubt = doubt or error.kind is Outcome.AMBIGUOUS
                if not self._again(error, number):
                    raise _final(error, doubt) from error
            else:
                self.budget.succeeded()
                return result
            await self._sleep(self._pause(number))
        raise AssertionError("the last attempt raises")

    async def _rest(self) -> None:
        seconds = self.budget.rest(self._clock.monotonic())
        if seconds > 0:
            await self._sleep(seconds)

    def _again(self, error: ObjectError, number: int) -> bool:
        if error.throttled:
            self.budget.throttled(self._clock.monotonic(), self._rng.random())
        if error.kind is Outcome.REFUSED:
            return False
        return number < self._policy.attempts_max and self.budget.take()

    def _pause(self, number: int) -> float:
        """Full jitter: requests that failed together are not retried together."""
        longest = min(
            self._policy.pause_seconds_max, self._policy.pause_seconds * 2.0 ** (number - 1)
        )
        return longest * self._rng.random()


async def _timed(
    what: str, attempt: Callable[[], Awaitable[T]], late: Outcome, seconds: float
) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await attempt()
    except TimeoutError as error:
        raise ObjectError(f"{what}: no answer within {seconds:g} s", late) from error


def _final(error: ObjectError, doubt: bool) -> ObjectError:
    """The last error, ambiguous if an earlier attempt was."""
    if not doubt or error.kind is Outcome.AMBIGUOUS or isinstance(error, Exists):
        return error
    return ObjectError(str(error), Outcome.AMBIGUOUS, throttled=error.throttled)
