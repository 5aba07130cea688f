"""Confirms that this broker still leads: asks the in-sync replicas before it answers strict reads.

A deposed broker that does not know it yet would answer from an old state. Any other leader is one
of the in-sync replicas; so if each of them, asked after the request arrived, still knows no later
epoch, then everything committed before the request was committed here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class LeadershipRounds:
    """One round of requests serves all reads that arrived before it began."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        """``ask`` raises NOT_COORDINATOR, or why leadership could not be confirmed."""
        self._ask = ask
        self._asking: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def confirm(self) -> None:
        """Raises the round's error."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run(self._asking))
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._next)

    async def _run(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait({before})
        # Reads that arrive from now on need a round that begins later.
        self._asking, self._next = self._next, None
        await self._ask()
