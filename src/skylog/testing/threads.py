"""A node in a thread of this process, with its own event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from skylog.broker.assembly.controller_node import ControllerNode
from skylog.broker.assembly.wiring import Node
from skylog.kernel.settings import load_settings

T = TypeVar("T")
_LAST_TURNS = 3


class NodeThread:
    """Starts and stops one node; its overrides are ``key=value``."""

    def __init__(
        self,
        overrides: Sequence[str],
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._overrides = list(overrides)
        self._on_failure = on_failure
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None

    @property
    def running(self) -> bool:
        return self._node is not None

    @property
    def node(self) -> Node:
        if self._node is None:
            raise RuntimeError("the node is not running")
        return self._node

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the node's loop, and wait for it."""
        if self._loop is None:
            work.close()
            raise RuntimeError("the node is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self) -> Self:
        """Start; raises the error that prevents the node from starting."""
        try:
            settings = load_settings(None, {}, self._overrides)
            kind = Node if settings.node.is_broker else ControllerNode
            node = kind(settings, on_failure=self._on_failure)
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run_loop, args=(self._loop,), name="skylog-node", daemon=True
            )
            self._thread.start()
            self.run(_start(node))
        except BaseException:
            self._end()
            raise
        self._node = node
        return self

    def stop(self) -> None:
        """Shut down cleanly."""
        node, self._node = self._node, None
        try:
            if node is not None:
                self.run(node.stop())
        finally:
            self._end()

    def kill(self) -> None:
        """Stop at once, as if killed: nothing flushed, sockets closed."""
        node, self._node = self._node, None
        try:
            if node is not None:
                self.run(node.abandon())
        finally:
            self._end()

    def _end(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop = self._thread = None


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        for _ in range(_LAST_TURNS):  # closed resources raise in their owners
            loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        # A killed node has closed nothing: its sockets must not be left to the garbage collector.
        for transport in list(getattr(loop, "_transports", {}).values()):
            transport.abort()
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()


async def _start(node: Node) -> None:
    await node.start()
    try:
        await node.start_http()
    except BaseException:
        await node.stop()
        raise
