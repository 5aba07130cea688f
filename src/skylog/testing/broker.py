"""A whole node in a thread of this process, on free ports and in a directory of its own."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from skylog.broker.wiring import Node
from skylog.kernel.settings import load_settings

T = TypeVar("T")
# What makes a broker quick to start and to test against; anything may be overridden.
DEFAULTS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "http.listener": "",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}


class Broker:
    """``with Broker() as b: … b.bootstrap``; settings are Kafka's, with dots or underscores."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
    ) -> None:
        """``directory`` keeps the data beyond this broker; without it, it goes with the broker."""
        self._given = {**DEFAULTS, **(settings or {})}
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="skylog-")
        self.directory = directory or Path(self._temporary.name)  # type: ignore[union-attr]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            raise RuntimeError("the broker is not running")
        return self._node

    @property
    def bootstrap(self) -> str:
        """``host:port``, for ``bootstrap.servers``."""
        return self.node.address()

    def address(self, listener: str) -> str:
        """``host:port`` of a named listener."""
        return self.node.address(listener)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the broker's own loop do something, and wait for it."""
        if self._loop is None:
            raise RuntimeError("the broker is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self) -> Self:
        """Start; raises what keeps the broker from starting."""
        overrides = [f"{key}={value}" for key, value in self._given.items()]
        overrides.append(f"log.dirs={self.directory}")
        try:
            node = Node(load_settings(None, {}, overrides))
            loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_run_loop, args=(loop,), name="skylog-broker", daemon=True
            )
            thread.start()
            self._loop, self._thread = loop, thread
            asyncio.run_coroutine_threadsafe(_start(node), loop).result()
        except BaseException:
            self._clean_up()
            raise
        self._node = node
        return self

    def stop(self) -> None:
        """Shut down in good order and free the ports; the data of a given directory stays."""
        node, self._node = self._node, None
        try:
            if node is not None and self._loop is not None:
                asyncio.run_coroutine_threadsafe(node.stop(), self._loop).result()
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop = self._thread = None
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _start(node: Node) -> None:
    await node.start()
    try:
        await node.start_http()
    except BaseException:
        await node.stop()
        raise
