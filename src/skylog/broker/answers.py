"""What becomes of a request: an answer, one that comes later, or the end of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from skylog.wire.buffers import Buffer


class Close(Exception):  # noqa: N818 - a verdict, not an error
    """The connection ends here, without an answer."""


class Overlapping:
    """An answer that takes long and does not keep the next Produce request from beginning.

    ``finish`` makes it, once ``done`` is done or, if there is a limit, the time is up. There is no
    task: a busy connection has thousands of these a second.
    """

    __slots__ = ("_done", "_expired", "_seconds_max", "_timer", "finish")

    def __init__(
        self,
        done: asyncio.Future[Any],
        finish: Callable[[], Any],
        seconds_max: float | None = None,
    ) -> None:
        self.finish = finish
        self._done = done
        self._seconds_max = seconds_max
        self._timer: asyncio.TimerHandle | None = None
        self._expired = False

    @property
    def over(self) -> bool:
        return self._expired or self._done.done()

    def start(self, tell: Callable[[], None]) -> None:
        """``tell`` when it is over."""

        def end(_: object = None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            tell()

        def expire() -> None:
            self._expired = True
            self._done.remove_done_callback(end)
            tell()

        self._done.add_done_callback(end)
        if self._seconds_max is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds_max, expire)

    async def wait(self) -> Any:
        """The answer, for somebody who has a task of their own anyway."""
        over = asyncio.get_running_loop().create_future()
        self.start(lambda: None if over.done() else over.set_result(None))
        await over
        return self.finish()


class Answer:
    """What goes back: the frame's parts, how long the client is muted, whether it is the last."""

    __slots__ = ("close", "mute_ms", "parts")

    def __init__(self, parts: list[Buffer], mute_ms: int = 0, close: bool = False) -> None:
        self.parts = parts
        self.mute_ms = mute_ms
        self.close = close
