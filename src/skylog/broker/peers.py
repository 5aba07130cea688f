"""Requests to other brokers, over their inter-broker listener.

A broker answers the requests of a connection in order, so who lets it wait (a fetch, a commit) has
a lane, which is a connection, of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skylog.client.connection import ClientConnection, open_connection
from skylog.client.settings import Address, ClientSettings, Ports
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.security.tls import client_context

if TYPE_CHECKING:
    import ssl

    from skylog.controller.image import ClusterImage
    from skylog.wire.schema import Message

_Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class PeerAccess:
    """How another node's listener is reached: the listener's name, and a client's settings."""

    listener: str
    # Made when it is first needed: a node of its own has nobody to log in at.
    client: Callable[[], ClientSettings]


class BrokerPeers:
    """Asks other brokers. All calls come from the event loop."""

    def __init__(self, image: ClusterImage, access: PeerAccess, ports: Ports) -> None:
        self._image = image
        self._access = access
        self._ports = ports
        self._client: tuple[ClientSettings, ssl.SSLContext | None] | None = None
        self._connections: dict[_Line, ClientConnection] = {}
        self._opening: dict[_Line, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def send(
        self,
        node_id: int,
        request: Message,
        version: int | None = None,
        *,
        lane: str = "",
        timeout_ms: int | None = None,
    ) -> Any:
        """The answer, in this version or in the newest that both know.

        ``timeout_ms`` is how long the broker itself may let the request wait, on top of
        request.timeout.ms. A KafkaError that is not ambiguous says that nothing was sent.
        """
        connection = await self._connection(node_id, lane)
        return await connection.request(
            request,
            version_min=version or 0,
            version_max=version,
            timeout_ms=timeout_ms or 0,
        )

    def forget(self, node_id: int) -> None:
        """Close what is open to a broker; who waits for its answers is told."""
        for line in [line for line in self._connections if line[0] == node_id]:
            self._retire(self._connections.pop(line))
        for line in [line for line, lock in self._opening.items() if line[0] == node_id]:
            if not self._opening[line].locked():
                del self._opening[line]

    def renew(self) -> None:
        """Take up changed certificates for the connections to come."""
        self._client = None

    async def close(self) -> None:
        self._closed = True
        for connection in self._connections.values():
            self._retire(connection)
        self._connections.clear()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _connection(self, node_id: int, lane: str) -> ClientConnection:
        address, line = self._address(node_id), (node_id, lane)
        async with self._opening.setdefault(line, asyncio.Lock()):
            known = self._connections.get(line)
            if known is not None and known.usable and known.address == address:
                return known
            if known is not None:
                self._retire(self._connections.pop(line))
            if self._closed:
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "this broker is shutting down")
            client, tls = self._prepared()
            if lane:
                client = replace(client, client_id=f"{client.client_id}-{lane}")
            opened = await open_connection(address, client, self._ports, tls)
            self._connections[line] = opened
            return opened

    def _address(self, node_id: int) -> Address:
        """A broker that is fenced may be asked too: it knows best whether it answers."""
        broker = self._image.broker(node_id)
        node = None if broker is None else broker.node(self._access.listener)
        if node is None:
            known = "is not registered" if broker is None else "has no such listener"
            why = f"broker {node_id} {known} (listener {self._access.listener})"
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, why)
        return Address(node.host, node.port)

    def _prepared(self) -> tuple[ClientSettings, ssl.SSLContext | None]:
        if self._client is None:
            try:
                client = self._access.client()
                tls = None if client.tls is None else client_context(client.tls)
            except ConfigError as error:
                raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
            self._client = client, tls
        return self._client

    def _retire(self, connection: ClientConnection) -> None:
        task = asyncio.ensure_future(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
