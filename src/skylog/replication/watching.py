"""Watchers of a partition: for records to read, for commits, or for its deletion.

A waiting fetch *watches* its partitions and is notified of changes, so that it costs nothing until
something happens, however many partitions it covers. Consumers are notified of commits, followers
of appends.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from skylog.kernel.errors import KafkaError

if TYPE_CHECKING:
    from skylog.log.log import Log


class Watcher(Protocol):
    """Waits for a partition to change."""

    def partition_moved(self, appended_bytes: int) -> None:
        """More is readable; 0 bytes: something else changed (leader, log start, deletion)."""
        ...


class FollowerWatcher(Watcher, Protocol):
    """A follower's fetch session that includes this partition."""

    @property
    def replica_id(self) -> int: ...

    @property
    def fetched_ms(self) -> int:
        """When it last fetched, whether or not it named this partition."""
        ...

    def high_watermark_moved(self) -> None:
        """The next response should include it; it need not be woken."""
        ...


class WatchedLog:
    """A log and the callers that wait for it. All methods run on the event loop."""

    __slots__ = (
        "_commit_listeners",
        "_follower_watchers",
        "_low_waiting",
        "_waiting",
        "_watchers",
        "log",
    )

    def __init__(self, log: Log) -> None:
        self.log = log
        self._watchers: dict[Watcher, None] = {}
        self._follower_watchers: dict[FollowerWatcher, None] = {}
        self._commit_listeners: list[Callable[[int], None]] = []
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._low_waiting: list[tuple[int, asyncio.Future[None]]] = []

    def committed(self, offset: int) -> asyncio.Future[None] | None:
        """A future for when ``offset`` is below the high watermark; None if it already is."""
        if self.log.high_watermark > offset:
            return None
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, id(future), future))
        return future

    def watch(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def watch_appends(self, watcher: FollowerWatcher) -> None:
        self._follower_watchers[watcher] = None

    def unwatch(self, watcher: Any) -> None:
        self._watchers.pop(watcher, None)
        self._follower_watchers.pop(watcher, None)

    def on_commit(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call ``listener`` with every new high watermark, until the returned function is
        called."""
        self._commit_listeners.append(listener)
        return partial(self._commit_listeners.remove, listener)

    def _commit(self, high_watermark: int) -> None:
        log = self.log
        if log.high_watermark >= high_watermark:
            return
        log.high_watermark = high_watermark
        self._tell_committed(high_watermark)

    def _tell_committed(self, high_watermark: int) -> None:
        for listener in tuple(self._commit_listeners):
            listener(high_watermark)
        while self._waiting and self._waiting[0][0] < high_watermark:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def _fail_waiting(self, error: KafkaError) -> None:
        waiting = [future for _, _, future in self._waiting]
        waiting += [future for _, future in self._low_waiting]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
        self._low_waiting.clear()

    def _notify(self, appended_bytes: int) -> None:
        self._notify_readers(appended_bytes)
        for watcher in tuple(self._follower_watchers):
            watcher.partition_moved(appended_bytes)

    def _notify_readers(self, appended_bytes: int) -> None:
        for watcher in tuple(self._watchers):
            watcher.partition_moved(appended_bytes)

    def _wait_for_low_watermark(self, offset: int) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self._low_waiting.append((offset, future))
        return future

    def _release_low_waiting(self, low_watermark: int) -> None:
        if self._low_waiting:
            left = []
            for offset, future in self._low_waiting:
                if future.done():
                    continue
                if offset <= low_watermark:
                    future.set_result(None)
                else:
                    left.append((offset, future))
            self._low_waiting = left
