"""A node as a process: signals, an event loop, and a clear message when it cannot go on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from skylog.broker.assembly.controller_node import ControllerNode
from skylog.broker.assembly.wiring import Node
from skylog.kernel import limits
from skylog.kernel.allocator import keep_freed_buffers
from skylog.kernel.logging import get_logger
from skylog.kernel.native import native_libraries
from skylog.kernel.settings import BrokerSettings

log = get_logger("broker.run")
# Objects that a busy broker keeps alive at once: with a lower threshold the garbage collector would
# visit each of them several times before it is freed, and find nothing.
COLLECTED_OBJECTS: Final = 10_000
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
# Heaps of the allocator. Threads that share the interpreter's lock rarely contend for one, and each
# further heap keeps freed memory: with glibc's default a reader of old objects took twice the
# memory.
ARENAS: Final = 1


def run_node(
    settings: BrokerSettings,
    on_ready: Callable[[Node], None],
    *,
    diskless_topics: Sequence[str] = (),
) -> None:
    """Run until a signal ends it; raises ConfigError or StorageError if it cannot start."""
    import uvloop  # noqa: PLC0415 - tests run nodes on other loops

    keep_freed_buffers(arenas_max=ARENAS)
    allow_many_files()
    warn_without_native()
    uvloop.run(_run(settings, on_ready, diskless_topics))


def allow_many_files() -> None:
    """Raise the limit on open files as far as the system allows: the usual one suits a shell."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def warn_without_native() -> None:
    """Log once which work runs in Python because this installation has no C modules for it."""
    missing = [library for library, built in native_libraries().items() if not built]
    if missing:
        log.warning(
            "C modules are missing; slower Python code runs instead",
            modules=",".join(missing),
            remedy="install skylog from a wheel, or again with a C compiler and Python's headers",
        )


async def _run(
    settings: BrokerSettings, on_ready: Callable[[Node], None], diskless_topics: Sequence[str]
) -> None:
    try:
        await _serve(settings, on_ready, diskless_topics)
    finally:
        _end_after(limits.EXIT_SECONDS_MAX)


async def _serve(
    settings: BrokerSettings, on_ready: Callable[[Node], None], diskless_topics: Sequence[str]
) -> None:
    loop = asyncio.get_running_loop()
    end: asyncio.Future[Exception | None] = loop.create_future()

    def finish(error: Exception | None = None) -> None:
        if not end.done():
            end.set_result(error)

    def signalled() -> None:
        # A second signal ends the process at once, whatever it is waiting for.
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        finish()

    for number in _SIGNALS:
        loop.add_signal_handler(number, signalled)
    kind = Node if settings.node.is_broker else ControllerNode
    node = kind(settings, on_failure=finish)
    if not await _start(node, end):
        return
    # Everything alive now stays alive: the garbage collector, off until now, can skip it.
    gc.freeze()
    gc.set_threshold(COLLECTED_OBJECTS, *gc.get_threshold()[1:])
    gc.enable()
    try:
        await node.start_http()
        for topic in diskless_topics:
            await node.create_diskless_topic(topic)
        on_ready(node)
        error = await end
    finally:
        log.info("shutting down")
        _end_after(limits.SHUTDOWN_SECONDS_MAX)
        await node.stop()
        log.info("shut down")
    if error is not None:
        raise error


async def _start(node: Node, end: asyncio.Future[Exception | None]) -> bool:
    """Start; False if a signal came first: a broker may wait long for its controllers."""
    starting = asyncio.ensure_future(node.start())
    either: set[asyncio.Future[Any]] = {starting, end}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    _end_after(limits.SHUTDOWN_SECONDS_MAX)
    await asyncio.gather(starting, return_exceptions=True)
    error = end.result()
    if error is not None:
        raise error
    log.info("stopped while starting")
    return False


def _end_after(seconds: float) -> None:
    """End the process by then: the interpreter itself waits for every remaining task and thread,
    and a store or a disk may never let one finish."""

    def end() -> None:
        log.error("process ended while work was still running", seconds=seconds)
        os._exit(1)

    last_resort = threading.Timer(seconds, end)
    last_resort.daemon = True
    last_resort.start()
