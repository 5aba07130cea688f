"""How a node connects to the listeners of other nodes: their protocol, and its own credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skylog.broker.net.peers import PeerAccess
from skylog.client.settings import ClientSettings, SaslLogin
from skylog.kernel.errors import ConfigError
from skylog.security.listener import SUPPORTED_MECHANISMS, listener_jaas
from skylog.security.tls import TlsSettings, client_context

if TYPE_CHECKING:
    from skylog.kernel.settings import BrokerSettings, ListenerSettings

BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"


def broker_access(settings: BrokerSettings) -> PeerAccess:
    """For connections to other brokers."""
    name = settings.inter_broker_listener
    return PeerAccess(
        name, lambda: _client(settings, settings.listener(name), BROKER_MECHANISM, "broker")
    )


def controller_client(settings: BrokerSettings, *, request_timeout_ms: int) -> ClientSettings:
    """For connections to controllers, to follow their log or to send requests."""
    listener = settings.controller_access
    if listener is None:
        raise ConfigError(
            "controller.listener.names is empty; its first name is used to reach controllers"
        )
    who = "broker" if settings.node.is_broker else "controller"
    return _client(settings, listener, CONTROLLER_MECHANISM, who, request_timeout_ms)


def check_access(settings: BrokerSettings) -> None:
    """Validate the settings for connections to other nodes before anything is started."""
    if not (settings.quorum.voters or settings.quorum.bootstrap_servers):
        return  # a single node
    clients = [controller_client(settings, request_timeout_ms=settings.node.request_timeout_ms)]
    if settings.node.is_broker:
        clients.append(broker_access(settings).client())
    for client in clients:
        if client.tls is not None:
            client_context(client.tls)


def _client(
    settings: BrokerSettings,
    listener: ListenerSettings,
    mechanism_key: str,
    who: str,
    request_timeout_ms: int | None = None,
) -> ClientSettings:
    return ClientSettings(
        (),
        client_id=f"{who}-{settings.node.node_id}",
        tls=TlsSettings.of(listener.values) if listener.tls else None,
        sasl=_login(listener, settings[mechanism_key], mechanism_key) if listener.sasl else None,
        request_timeout_ms=request_timeout_ms or settings.node.request_timeout_ms,
    )


def _login(listener: ListenerSettings, mechanism: str, key: str) -> SaslLogin:
    """A node's own credentials: the username and password of the listener's JAAS entry."""
    if mechanism not in SUPPORTED_MECHANISMS:
        raise ConfigError(f"{key} is {mechanism}; allowed are {', '.join(SUPPORTED_MECHANISMS)}")
    entry = listener_jaas(listener, mechanism)
    if entry.username is None or entry.password is None:
        raise ConfigError(
            f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config needs "
            f"username and password, with which this node logs in to others ({key}={mechanism})"
        )
    return SaslLogin(mechanism, entry.username, entry.password)
