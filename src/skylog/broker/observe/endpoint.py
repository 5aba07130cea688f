"""/metrics and /health of a node: last, because nobody's record waits for them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

    from prometheus_client.registry import Collector

    from skylog.broker.observe.http import HttpServer
    from skylog.kernel.executor import Executor


async def serve_observation(
    bound: socket.socket,
    health: Callable[[], dict[str, Any]],
    executor: Executor,
    collectors: Callable[[], list[Collector]],
) -> HttpServer:
    """Serve the pages on a bound socket; ``collectors`` may import what nobody else needs."""
    # A tenth of a second of imports, on a thread: clients are being served already.
    await executor.run(lambda: import_module("skylog.broker.observe.http"))
    from skylog.broker.observe.http import HttpServer  # noqa: PLC0415
    from skylog.kernel.metrics import Metrics  # noqa: PLC0415

    metrics = Metrics()
    for collector in collectors():
        metrics.register(collector)
    http = HttpServer(metrics, health, executor)
    await http.start(bound)
    return http
