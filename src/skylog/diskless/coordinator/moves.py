"""A coordinator's recent high watermarks, for brokers with waiting consumers.

A waiting broker sends the position up to which it knows everything (``since``) and gets what
advanced after it, each partition once. Positions only grow, also across leaders: they start at the
time when the coordinator was loaded, in millionths of a millisecond. A broker whose position is of
an earlier leader, or too old, gets all partitions.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from skylog.diskless.plane import TopicPartition
from skylog.kernel.limits import DISKLESS_MOVES_KEPT_MAX

_PLACES_PER_MS = 1_000_000


class Moves:
    """The last high watermarks of one coordinator, in the order in which they came."""

    def __init__(self, now_ms: int, kept_max: int = DISKLESS_MOVES_KEPT_MAX) -> None:
        self._place = now_ms * _PLACES_PER_MS
        # Moves up to here may have been forgotten.
        self._forgotten = self._place
        self._kept_max = kept_max
        self._moved: OrderedDict[TopicPartition, tuple[int, int]] = OrderedDict()
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def place(self) -> int:
        return self._place

    def note(self, partition: TopicPartition, high_watermark: int) -> None:
        self._place += 1
        self._moved[partition] = self._place, high_watermark
        self._moved.move_to_end(partition)
        if len(self._moved) > self._kept_max:
            _, (self._forgotten, _) = self._moved.popitem(last=False)
        while self._waiting:
            waiter = self._waiting.pop()
            if not waiter.done():
                waiter.set_result(None)

    def after(self, since: int) -> dict[TopicPartition, int] | None:
        """What moved since then; None if that is no longer known."""
        if not self._forgotten <= since <= self._place:
            return None
        moved: dict[TopicPartition, int] = {}
        for partition, (place, high_watermark) in reversed(self._moved.items()):
            if place <= since:
                break
            moved[partition] = high_watermark
        return moved

    async def wait(self, since: int, seconds: float) -> None:
        """Wait until something moves after that position, or the time is up."""
        if since != self._place:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return
        finally:
            self._waiting.discard(waiter)

    def end(self) -> None:
        """The coordinator is unloaded: end all waits."""
        while self._waiting:
            waiter = self._waiting.pop()
            if not waiter.done():
                waiter.set_result(None)
