"""How many may do something at once; the number may change while they wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from types import TracebackType


class Slots:
    """``async with slots``: first come, first served."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        return self._taken

    def resize(self, count: int) -> None:
        """Those that have a slot keep it."""
        self._count = count
        self._admit()

    @property
    def waiting(self) -> int:
        # A copy: metrics are collected on another thread.
        return sum(1 for turn in tuple(self._waiting) if not turn.done())

    @property
    def is_free(self) -> bool:
        """Whether the next one would not have to wait."""
        return self._taken < self._count

    def claim(self) -> asyncio.Future[None]:
        """Done when the claim has a slot, which it must ``leave``; cancelled before, it has none.

        For a caller that must take its place before it can wait.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        return turn

    async def __aenter__(self) -> None:
        turn = self.claim()
        if turn.done():
            return
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    async def let_go(self, wait: Awaitable[object]) -> None:
        """Within ``async with``: leave the slot to others for as long as ``wait`` takes."""
        self.leave()
        try:
            await wait
            await self.__aenter__()
        except BaseException:
            self._taken += 1  # its user leaves it at once
            raise

    def leave(self) -> None:
        self._taken -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._taken < self._count:
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
