"""The outcome of a request: a response now, a response later, or the end of the connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from math import inf
from typing import Any

from skylog.kernel.waiting import done_within
from skylog.wire.buffers import Buffer


class Close(Exception):  # noqa: N818 - a verdict, not an error
    """The connection is closed without a response."""


class Later:
    """A response that is not ready yet: ``finish`` builds it once ``done`` is done, or once the
    time limit, if any, is reached.

    A caller with its own task can await it like a coroutine. One that ``overlaps`` needs no task:
    the client's next Produce request can start, and the sender of responses builds it when it is
    next in order.
    """

    __slots__ = ("done", "due", "expired", "finish", "overlaps")

    def __init__(
        self,
        done: asyncio.Future[Any],
        finish: Callable[[], Any],
        seconds_max: float | None = None,
        *,
        overlaps: bool = True,
    ) -> None:
        self.finish = finish
        self.done = done
        self.overlaps = overlaps
        # By the event loop's clock.
        self.due = inf if seconds_max is None else asyncio.get_running_loop().time() + seconds_max
        self.expired = False

    @property
    def over(self) -> bool:
        return self.expired or self.done.done()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        if self.due == inf:
            await asyncio.wait([self.done])
        else:
            await done_within(self.done, self.due - asyncio.get_running_loop().time())
        return self.finish()


class Overlaps:
    """The overlapping responses of one connection, in the order of their requests.

    A busy connection has thousands per second, and hardly any of them times out: so there is no
    task for each, and one timer for all. There is no reference back to the connection: it would
    keep a closed connection in memory, in a reference cycle, until the garbage collector runs.
    """

    def __init__(self) -> None:
        self._line: deque[tuple[Later, int]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = inf

    def __len__(self) -> int:
        return len(self._line)

    @property
    def next_is_over(self) -> bool:
        return bool(self._line) and self._line[0][0].over

    def add(self, answer: Later, request_bytes: int, tell: Callable[[], None]) -> None:
        """``tell`` is called when it is done, whether or not it is next in order."""
        self._line.append((answer, request_bytes))
        answer.done.add_done_callback(lambda _: tell())
        if answer.due < self._timer_due:
            self._set_timer(answer.due, tell)

    def take(self) -> tuple[Later, int]:
        """The next one, with the bytes of its request."""
        return self._line.popleft()

    def close(self) -> None:
        """The responses are no longer needed."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_due = None, inf

    def _set_timer(self, due: float, tell: Callable[[], None]) -> None:
        self.close()
        if due != inf:
            self._timer_due = due
            self._timer = asyncio.get_running_loop().call_at(due, self._expire, tell)

    def _expire(self, tell: Callable[[], None]) -> None:
        now = asyncio.get_running_loop().time()
        waiting = [answer for answer, _ in self._line if not answer.over]
        for answer in waiting:
            answer.expired = answer.due <= now
        due = min((answer.due for answer in waiting if not answer.expired), default=inf)
        self._set_timer(due, tell)
        tell()


class Answer:
    """The response: the frame's parts, the client's throttle time, and whether it is the last."""

    __slots__ = ("close", "mute_ms", "parts")

    def __init__(self, parts: list[Buffer], mute_ms: int = 0, close: bool = False) -> None:
        self.parts = parts
        self.mute_ms = mute_ms
        self.close = close
