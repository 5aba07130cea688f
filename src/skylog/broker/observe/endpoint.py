"""/metrics and /health of a node: started last, because no client depends on them."""

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
    """Serve the pages on a bound socket; ``collectors`` may import modules used for nothing
    else."""
    # The imports take a tenth of a second; on a thread, because clients are served already.
    await executor.run(lambda: import_module("skylog.broker.observe.http"))
    from skylog.broker.observe.http import HttpServer  # noqa: PLC0415
    from skylog.kernel.metrics import Metrics  # noqa: PLC0415

    metrics = Metrics()
    for collector in collectors():
        metrics.register(collector)
    http = HttpServer(metrics, health, executor)
    await http.start(bound)
    return http
