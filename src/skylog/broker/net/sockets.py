"""A node's addresses, bound before anything else: if one is taken, nothing has been changed."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from skylog.kernel.errors import ConfigError

if TYPE_CHECKING:
    from skylog.kernel.settings import BrokerSettings, ListenerSettings


class Addresses:
    """Bound sockets that do not listen yet, until their servers take them over."""

    def __init__(self) -> None:
        self.listeners: dict[str, list[socket.socket]] = {}
        self.http: socket.socket | None = None
        self.http_host = ""

    def take(self, settings: BrokerSettings) -> None:
        """Bind all of them; ConfigError says which one cannot be bound, and what to do."""
        for listener in settings.listeners:
            taken = self.listeners.setdefault(listener.name, [])
            _bind_listener(listener, taken)
        host, _, port = settings.observation.http_listener.rpartition(":")
        if port:
            self.http_host = host
            self.http = _bind_http(host, int(port))

    def port(self, listener: str) -> int:
        return int(self.listeners[listener][0].getsockname()[1])

    def release(self) -> None:
        """Close what no server has closed."""
        for taken in self.listeners.values():
            for bound in taken:
                bound.close()
        if self.http is not None:
            self.http.close()


def _bind_listener(listener: ListenerSettings, taken: list[socket.socket]) -> None:
    """A host name may have several addresses: all are bound, to the same port."""
    host, port = listener.host, listener.port
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(found):
            chosen = taken[0].getsockname()[1] if taken else port
            taken.append(_bind(family, (address[0], chosen)))
    except OSError as error:
        advice = "correct the address in `listeners`"
        why = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            why = "the port is in use"
            advice = "stop the other program or choose another port in `listeners`"
        raise ConfigError(
            f"listener {listener.name} cannot bind {host}:{port}: {why}; {advice}"
        ) from error


def _bind_http(host: str, port: int) -> socket.socket:
    try:
        return _bind(socket.AF_INET6 if ":" in host else socket.AF_INET, (host.strip("[]"), port))
    except OSError as error:
        raise ConfigError(
            f"http.listener cannot bind {host}:{port}: {error.strerror}; choose another address, "
            "or leave http.listener empty to do without"
        ) from error


def _bind(family: int, address: tuple[str | int, int]) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Its IPv4 addresses, if any, are bound separately.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound
