"""/metrics and /health, on their own listener."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from skylog.kernel import limits
from skylog.kernel.executor import Executor
from skylog.kernel.metrics import CONTENT_TYPE, Metrics

BACKLOG = 64
Health = Callable[[], dict[str, Any]]


class _Connection(H11Protocol):
    """Closes after a while: connections are few, and clients that only hold one shut others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        seconds = limits.HTTP_CONNECTION_SECONDS_MAX
        self._end = asyncio.get_running_loop().call_later(seconds, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """Leaves signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves the pages of one node."""

    def __init__(self, metrics: Metrics, health: Health, executor: Executor) -> None:
        self.metrics = metrics
        self._executor = executor
        self._health = health
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self, bound: socket.socket) -> None:
        """Serve on a bound socket."""
        app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/health", self._show_health),
                Route("/metrics", self._show_metrics),
            ]
        )
        config = uvicorn.Config(
            app,
            http=_Connection,
            log_config=None,
            access_log=False,
            lifespan="off",
            limit_concurrency=64,
            # A client that does not read its page must not delay a shutdown.
            timeout_graceful_shutdown=1,
        )
        # Clients may connect as soon as they know the address, before the server has started.
        bound.listen(BACKLOG)
        self.port = bound.getsockname()[1]
        self._server = _Server(config)
        self._task = asyncio.ensure_future(self._server.serve(sockets=[bound]))

    async def stop(self) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task

    async def _index(self, _: Request) -> Response:
        return PlainTextResponse("skylog\n/health\n/metrics\n")

    async def _show_health(self, _: Request) -> Response:
        health = self._health()
        return JSONResponse(health, status_code=200 if health["status"] == "ok" else 503)

    async def _show_metrics(self, _: Request) -> Response:
        page = await self._executor.run(self.metrics.exposition)
        return Response(page, media_type=CONTENT_TYPE)
