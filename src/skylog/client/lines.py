"""Connections to nodes by their address, opened on first use.

A node answers the requests of a connection in order, so requests that wait at the node use a
separate lane, which is a separate connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace

from skylog.client.connection import ClientConnection, open_connection
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.system import System
from skylog.security.tls import client_context

_Line = tuple[Address, str]


class Lines:
    """One connection for each address and lane. All calls come from the event loop."""

    def __init__(self, client: Callable[[], ClientSettings], system: System) -> None:
        """``client`` is called when the first connection is opened: a single node has no other
        node to log in to. Its ConfigError is reported as SASL_AUTHENTICATION_FAILED."""
        self._client = client
        self._system = system
        self._prepared: tuple[ClientSettings, ssl.SSLContext | None] | None = None
        self._connections: dict[_Line, ClientConnection] = {}
        self._opening: dict[_Line, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def connection(self, address: Address, lane: str = "") -> ClientConnection:
        """A usable connection; a KafkaError means that there is none, and nothing was sent."""
        line = (address, lane)
        async with self._opening.setdefault(line, asyncio.Lock()):
            known = self._connections.get(line)
            if known is not None and known.usable:
                return known
            if known is not None:
                self._retire(self._connections.pop(line))
            self._check_open()
            settings, tls = self._prepare()
            if lane:
                settings = replace(settings, client_id=f"{settings.client_id}-{lane}")
            opened = await open_connection(address, settings, self._system, tls)
            if self._closed:
                await opened.close()
            self._check_open()
            self._connections[line] = opened
            return opened

    def drop(self, address: Address) -> None:
        """Close the connections to an address; pending requests fail."""
        for line in [line for line in self._connections if line[0] == address]:
            self._retire(self._connections.pop(line))
        for line in [line for line in self._opening if line[0] == address]:
            if not self._opening[line].locked():
                del self._opening[line]

    def renew(self) -> None:
        """Use changed certificates for new connections."""
        self._prepared = None

    async def close(self) -> None:
        self._closed = True
        for connection in self._connections.values():
            self._retire(connection)
        self._connections.clear()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "this node is shutting down")

    def _prepare(self) -> tuple[ClientSettings, ssl.SSLContext | None]:
        if self._prepared is None:
            try:
                settings = self._client()
                tls = None if settings.tls is None else client_context(settings.tls)
            except ConfigError as error:
                raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
            self._prepared = settings, tls
        return self._prepared

    def _retire(self, connection: ClientConnection) -> None:
        connection.abort()
        task = asyncio.ensure_future(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
