"""A listener: accepts connections, within limits, and closes those that idle or stall."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skylog.broker.net.connection import Connection
from skylog.kernel import limits
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ConfigError
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks

if TYPE_CHECKING:
    from skylog.broker.net.dispatch import Dispatcher
    from skylog.broker.net.in_flight import Memory
    from skylog.kernel.settings.sections import NetworkSettings
    from skylog.security.authentication import Authentication
    from skylog.security.connection_limits import ConnectionLimits
    from skylog.security.listener import ListenerSecurity

log = get_logger("broker.server")
# Kafka's default is too small for distant clients; it applies only if another value is set.
KAFKA_RECEIVE_BUFFER_BYTES = 102_400


async def stop_accepting(servers: Iterable[asyncio.Server]) -> None:
    """Close listening sockets, including connections that are being accepted: asyncio cannot create
    a transport for a closed server, and would leak the socket."""
    loop, closing = asyncio.get_running_loop(), tuple(servers)
    for server in closing:
        for bound in server.sockets:
            loop.remove_reader(bound.fileno())
    await asyncio.sleep(0)
    for server in closing:
        server.close()


class Listener:
    """One named listener of the broker or controller."""

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher,
        security: ListenerSecurity,
        admission: ConnectionLimits,
        clock: Clock,
        network: NetworkSettings,
        memory: Memory,
    ) -> None:
        self.name = name
        self.memory = memory
        self.dispatcher = dispatcher
        self.security = security
        self.clock = clock
        self.request_bytes_max = network.request_bytes_max
        self.unauthenticated_bytes_max = min(
            network.sasl_receive_bytes_max, limits.UNAUTHENTICATED_REQUEST_BYTES_MAX
        )
        self._network = network
        self._admission = admission
        # As in Kafka, a negative value means no limit.
        self._idle_s_max = network.idle_ms_max / 1000 if network.idle_ms_max >= 0 else math.inf
        self._connections: dict[Connection, None] = {}
        self._empty = asyncio.Event()
        self._stopping = False
        self._servers: list[asyncio.Server] = []
        self.port = 0

    def new_authentication(self) -> Authentication:
        return self.security.new_authentication()

    async def bind(self, sockets: Iterable[socket.socket]) -> None:
        """Take over bound sockets, without accepting yet."""
        tls = self.security.context
        loop = asyncio.get_running_loop()
        for bound in sockets:
            server = await loop.create_server(
                lambda: Connection(self),
                sock=bound,
                ssl=tls,
                ssl_handshake_timeout=limits.TLS_HANDSHAKE_SECONDS_MAX if tls else None,
                backlog=max(self._network.listen_backlog, limits.LISTEN_BACKLOG),
                start_serving=False,
            )
            self._servers.append(server)
        self.port = self._servers[0].sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Accept connections from now on."""
        try:
            for server in self._servers:
                await server.start_serving()
        except OSError as error:
            raise ConfigError(
                f"listener {self.name} cannot listen on port {self.port}: {error.strerror}; "
                "another program has taken it since"
            ) from error

    def admit(self, connection: Connection, transport: asyncio.Transport) -> bool:
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._size_buffers(raw)
        self._connections[connection] = None
        admitted = self._admission.opened(self.name, connection.address)
        self.security.identify(connection.authentication, transport.get_extra_info("ssl_object"))
        return admitted and not self._stopping

    def _size_buffers(self, raw: socket.socket) -> None:
        # A send buffer that grows takes a whole response at once, which then leaves the CPU caches
        # before the client reads it: consumers get half the throughput.
        sent, received = self._network.send_buffer_bytes, self._network.receive_buffer_bytes
        if sent > 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sent)
        # The system grows a receive buffer as needed unless its size is set.
        if received > 0 and received != KAFKA_RECEIVE_BUFFER_BYTES:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)

    def accept_delay_ms(self) -> int:
        """How long a new connection is delayed because of the connection rate limits."""
        return self._admission.accept_delay_ms(self.name)

    def forget(self, connection: Connection) -> None:
        if self._connections.pop(connection, True) is None:
            self._admission.closed(self.name, connection.address)
        if not self._connections:
            self._empty.set()

    def sweep(self) -> None:
        """Close connections that idle, never authenticate, or do not read their responses."""
        now = self.clock.monotonic()
        for connection in tuple(self._connections):
            if connection.stalled_for(now) > limits.WRITE_STALL_SECONDS_MAX:
                connection.abort()
            elif (
                not connection.introduced
                and now - connection.opened_at > limits.HANDSHAKE_SECONDS_MAX
            ):
                connection.close("not authenticated in time")
            elif now - connection.last_active > self._idle_s_max and not connection.busy:
                connection.close("idle")

    def __len__(self) -> int:
        return len(self._connections)

    async def stop(self) -> None:
        """Stop accepting, close all connections, and wait until no request is being handled."""
        self._stopping = True
        await stop_accepting(self._servers)
        connections = tuple(self._connections)
        tasks = [connection.task for connection in connections if connection.task is not None]
        for connection in connections:
            connection.close("shutdown")
        with contextlib.suppress(TimeoutError):
            await self._emptied(limits.SHUTDOWN_FLUSH_SECONDS_MAX)
        for connection in tuple(self._connections):
            connection.abort()
        with contextlib.suppress(TimeoutError):
            await self._emptied(limits.SHUTDOWN_FLUSH_SECONDS_MAX)
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=limits.SHUTDOWN_REQUESTS_SECONDS_MAX)
            await end_tasks(left)
        for server in self._servers:
            await server.wait_closed()

    async def abort(self) -> None:
        """Close everything at once, whatever is being handled."""
        self._stopping = True
        await stop_accepting(self._servers)
        for connection in tuple(self._connections):
            connection.abort()
        for server in self._servers:
            await server.wait_closed()

    async def _emptied(self, seconds_max: float) -> None:
        self._empty.clear()
        if self._connections:
            async with asyncio.timeout(seconds_max):
                await self._empty.wait()
