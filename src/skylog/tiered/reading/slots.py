"""So many at once, so many more may wait; both numbers may change at any time."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """Used on the event loop."""

    def __init__(self, size: int, waiting_max: int) -> None:
        self.size = size
        self.waiting_max = waiting_max
        self.used = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return sum(1 for turn in self._queue if not turn.done())

    @property
    def is_full(self) -> bool:
        """Whether one more could neither begin nor wait."""
        return self.used >= self.size and self.waiting >= self.waiting_max

    def claim(self) -> asyncio.Future[None]:
        """A slot, or a place in the queue: done when the claim has a slot, which it must leave.

        One that is cancelled before has none.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        self._go_on()
        return turn

    def leave(self) -> None:
        self.used -= 1
        self._go_on()

    def _go_on(self) -> None:
        while self._queue and self.used < self.size:
            turn = self._queue.popleft()
            if not turn.done():
                self.used += 1
                turn.set_result(None)
