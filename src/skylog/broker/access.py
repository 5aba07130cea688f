"""How a node reaches the listeners of other nodes: their protocol, and its own login there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.broker.peers import PeerAccess
from skylog.client.settings import ClientSettings, SaslLogin
from skylog.kernel.errors import ConfigError
from skylog.security.listener import SUPPORTED_MECHANISMS, listener_jaas
from skylog.security.tls import TlsSettings

if TYPE_CHECKING:
    from skylog.kernel.settings import BrokerSettings, ListenerSettings

INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"


def broker_access(settings: BrokerSettings) -> PeerAccess:
    """The way to other brokers."""
    name = settings.inter_broker_listener
    return PeerAccess(name, lambda: _broker_client(settings, settings.listener(name)))


def _broker_client(settings: BrokerSettings, listener: ListenerSettings) -> ClientSettings:
    node = settings.node
    mechanism = settings.security.inter_broker_mechanism
    return ClientSettings(
        (),
        client_id=f"broker-{node.node_id}",
        tls=TlsSettings.of(listener.values) if listener.tls else None,
        sasl=_login(listener, mechanism, INTER_BROKER_MECHANISM) if listener.sasl else None,
        request_timeout_ms=node.request_timeout_ms,
    )


def _login(listener: ListenerSettings, mechanism: str, key: str) -> SaslLogin:
    """A node's own name and password: the username and password of the listener's JAAS entry."""
    if mechanism not in SUPPORTED_MECHANISMS:
        raise ConfigError(f"{key} is {mechanism}; allowed are {', '.join(SUPPORTED_MECHANISMS)}")
    entry = listener_jaas(listener, mechanism)
    if entry.username is None or entry.password is None:
        raise ConfigError(
            f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config needs "
            f"username and password, with which this node logs in at others ({key}={mechanism})"
        )
    return SaslLogin(mechanism, entry.username, entry.password)
