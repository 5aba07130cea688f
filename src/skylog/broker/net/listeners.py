"""All listeners of a node: which APIs each serves, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from skylog.broker.assembly.translate import advertised_host
from skylog.broker.net.dispatch import Dispatcher
from skylog.broker.net.server import Listener
from skylog.broker.net.table import broker_table, controller_table
from skylog.kernel.errors import ConfigError
from skylog.security.listener import ListenerSecurity
from skylog.wire.messages import broker_registration_request as registration
from skylog.wire.messages import controller_registration_request as controller_registration

if TYPE_CHECKING:
    from skylog.broker.net.in_flight import Memory
    from skylog.broker.net.sockets import Addresses
    from skylog.broker.services import Services
    from skylog.kernel.rng import Random
    from skylog.kernel.settings import BrokerSettings
    from skylog.security.connection_limits import ConnectionLimits
    from skylog.security.listener import ScramCredentials

_PROTOCOL_NUMBERS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def listener_securities(
    settings: BrokerSettings, credentials: ScramCredentials, rng: Random
) -> dict[str, ListenerSecurity]:
    """How each listener is secured; ConfigError if that is impossible."""
    delay_ms = settings.network.failed_authentication_delay_ms
    return {
        each.name: ListenerSecurity(each, credentials, rng, failed_delay_ms=delay_ms)
        for each in settings.listeners
    }


class Listeners:
    """Listeners by name, in the order of the settings."""

    def __init__(
        self,
        services: Services,
        settings: BrokerSettings,
        securities: Mapping[str, ListenerSecurity],
        limits: ConnectionLimits,
        memory: Memory,
    ) -> None:
        self._settings = settings
        clients = Dispatcher(services, broker_table())
        brokers = Dispatcher(services, broker_table(inter_broker=True))
        controllers = Dispatcher(services, controller_table(), of_controller=True)
        self.dispatchers = (clients, brokers, controllers)
        self._listeners: dict[str, Listener] = {}
        for each in settings.listeners:
            among_brokers = each.name == settings.inter_broker_listener
            self._listeners[each.name] = Listener(
                each.name,
                controllers if each.controller else brokers if among_brokers else clients,
                securities[each.name],
                limits,
                services.clock,
                settings.network,
                memory,
            )

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._listeners.values())

    def __getitem__(self, name: str) -> Listener:
        return self._listeners[name]

    async def bind(self, addresses: Addresses) -> None:
        """Take over the bound sockets, without accepting yet."""
        for name, listener in self._listeners.items():
            await listener.bind(addresses.listeners[name])

    async def serve(self, *, of_controller: bool) -> None:
        """Accept connections, either on controllers' listeners or on all others."""
        for listener in self:
            if listener.dispatcher.of_controller == of_controller:
                await listener.serve()

    async def abort(self) -> None:
        """Close everything at once."""
        for listener in self:
            await listener.abort()
        # Work begun by the last frame proceeds to its first wait.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        for listener in reversed(list(self)):
            await listener.stop()

    def advertised(self) -> list[registration.Listener]:
        """The broker's listeners, as registered with the controller."""
        return [
            registration.Listener(
                listener.name,
                advertised_host(listener),
                listener.advertised_port or self[listener.name].port,
                _PROTOCOL_NUMBERS[listener.protocol],
            )
            for listener in self._settings.broker_listeners
            if listener.advertised
        ]

    def of_controllers(self) -> list[controller_registration.Listener]:
        """This controller's listeners, as registered with the cluster."""
        return [
            controller_registration.Listener(
                listener.name,
                advertised_host(listener),
                listener.advertised_port or self[listener.name].port,
                _PROTOCOL_NUMBERS[listener.protocol],
            )
            for listener in self._settings.controller_listeners
        ]

    async def sweep(self) -> None:
        """Close connections that idle, never authenticate, or do not read."""
        for listener in self:
            listener.sweep()

    def reload_certificates(self) -> None:
        """Load changed key and trust stores; a ConfigError is raised after all have been tried."""
        failed: ConfigError | None = None
        for listener in self:
            if listener.security.tls is not None:
                try:
                    listener.security.tls.reload_if_changed()
                except ConfigError as error:
                    failed = error
        if failed is not None:
            raise failed
