"""The listener of /metrics and /health."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from skylog.broker.observe.http import HttpServer
from skylog.kernel import limits
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.metrics import Metrics

PATIENCE_SECONDS = 60


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[int]:
    http = HttpServer(Metrics(), lambda: {"status": "ok"}, InlineExecutor())
    with socket.create_server(("127.0.0.1", 0)) as bound:
        await http.start(bound)
        try:
            yield http.port
        finally:
            await http.stop()


async def answer_to(port: int, sent: bytes) -> bytes:
    """All that comes until the server ends the connection."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(sent)
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: "])
async def test_a_client_that_sends_no_request_does_not_stay(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(limits, "HTTP_CONNECTION_SECONDS_MAX", 0.1)
    async with serving() as port:
        assert await answer_to(port, sent) == b""


async def test_a_client_that_asks_is_answered() -> None:
    async with serving() as port:
        asked = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        answer = await answer_to(port, asked)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b'{"status":"ok"}')
