"""A listener that closes while a client connects: no socket is left open."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket

import pytest

from skylog.broker.net.server import stop_accepting


class Guest(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


@pytest.mark.parametrize("turns", range(5))
async def test_connections_being_accepted_are_closed_too(turns: int) -> None:
    server = await asyncio.get_running_loop().create_server(Guest, "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname(), timeout=60) as client:
        for _ in range(turns):  # at whatever stage the loop is
            await asyncio.sleep(0)
        await stop_accepting([server])
        for _ in range(3):
            await asyncio.sleep(0)
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
    gc.collect()  # an unclosed transport is reported here
