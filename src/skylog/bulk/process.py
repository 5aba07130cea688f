"""One event loop per process, in its own thread, and its connections.

Tasks of Spark and threads of a frame are synchronous. They share a client and a store for each
cluster, so that a thousand small tasks connect once. A forked worker starts over: neither threads
nor sockets survive a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from skylog.bulk.store import open_bulk_store, open_tiered_store
from skylog.bulk.tiered import TieredReads
from skylog.client.cluster import Cluster
from skylog.client.settings import ClientSettings
from skylog.kernel.errors import KafkaError, SkylogError
from skylog.kernel.executor import Executor, ThreadExecutor
from skylog.objects.store import ObjectStore

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]

_CLUSTERS_MAX: Final = 8
_CLOSE_SECONDS: Final = 10.0
# Verifies checksums while the caller decodes earlier data.
_THREADS: Final = 2


def pairs(settings: Mapping[str, str]) -> Pairs:
    """Settings as a value that can be hashed and sent."""
    return tuple(sorted(settings.items()))


@dataclass(slots=True)
class Connections:
    """A client, and the stores whose addresses it has received. ``tiered`` is by the address of the
    diskless store: of the other one brokers tell when they locate something there."""

    cluster: Cluster
    stores: dict[tuple[str, Pairs], ObjectStore] = field(default_factory=dict)
    tiered: dict[tuple[str, Pairs], TieredReads] = field(default_factory=dict)

    def store(self, url: str, options: Pairs) -> ObjectStore:
        """On the loop's thread."""
        found = self.stores.get((url, options))
        if found is None:
            found = self.stores[url, options] = open_bulk_store(url, dict(options))
        return found

    def tiered_reads(self, storage_url: str, options: Pairs, executor: Executor) -> TieredReads:
        """On the loop's thread."""
        found = self.tiered.get((storage_url, options))
        if found is None:

            def open_store(url: str) -> ObjectStore:
                return open_tiered_store(url, storage_url, dict(options))

            found = self.tiered[storage_url, options] = TieredReads(open_store, executor)
        return found

    async def close(self) -> None:
        with suppress(KafkaError):
            await self.cluster.close()
        for reads in self.tiered.values():
            with suppress(SkylogError):
                await reads.close()
        for store in self.stores.values():
            with suppress(SkylogError):
                await store.close()


class Process:
    """The loop's thread and what lives on it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self.executor = ThreadExecutor(_THREADS, "skylog-bulk-verify")
        self._known: OrderedDict[Pairs, Connections] = OrderedDict()
        thread = threading.Thread(target=self._run_loop, name="skylog-bulk", daemon=True)
        thread.start()
        self._thread = thread

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()  # waiting callers get the error
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._closed:
            work.close()
            raise RuntimeError("the connections of this process are closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop and wait for it."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait until something is closed. What belonged to a loop that has ended is already
        closed."""
        if self._closed:
            work.close()
            return
        with suppress(CancelledError):
            self.run(work)

    async def connections(self, properties: Pairs) -> Connections:
        """On the loop's thread: the clients of a cluster; the least recently used one is closed."""
        found = self._known.get(properties)
        if found is None:
            found = Connections(Cluster(ClientSettings.of(dict(properties))))
            self._known[properties] = found
            await self._close_surplus()
        self._known.move_to_end(properties)
        return found

    async def _close_surplus(self) -> None:
        while len(self._known) > _CLUSTERS_MAX:
            await self._known.popitem(last=False)[1].close()

    async def _close_all(self) -> None:
        while self._known:
            await self._known.popitem()[1].close()

    def close(self) -> None:
        closing = self.start(self._close_all())
        self._closed = True
        with suppress(TimeoutError):
            closing.result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        self.executor.close()


_lock = threading.Lock()
_current: Process | None = None


def this_process() -> Process:
    """The instance of this process; a forked child gets its own."""
    global _current  # noqa: PLW0603 - there is one per process by nature
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = Process()
            atexit.register(close_process)
        return _current


def close_process() -> None:
    """Close all connections; the next reader opens new ones."""
    global _current
    with _lock:
        current, _current = _current, None
    if current is not None and current.pid == os.getpid():
        current.close()
