"""So many at once, so many more may wait; both numbers may change at any time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """Used on the event loop."""

    def __init__(self, size: int, waiting_max: int) -> None:
        self.size = size
        self.waiting_max = waiting_max
        self.used = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether one more could neither begin nor wait."""
        return self.used >= self.size and len(self._queue) >= self.waiting_max

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        if self.used >= self.size:
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn  # whoever wakes it has counted it
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()
                else:
                    self._queue.remove(turn)
                raise
        else:
            self.used += 1
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        self.used -= 1
        while self._queue and self.used < self.size:
            turn = self._queue.popleft()
            if not turn.done():
                self.used += 1
                turn.set_result(None)
