"""Requests to other brokers, over their inter-broker listener."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skylog.client.lines import Lines
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.system import System

if TYPE_CHECKING:
    from skylog.controller.image import ClusterImage
    from skylog.wire.schema import Message


@dataclass(frozen=True, slots=True)
class PeerAccess:
    """How other nodes are reached: the name of their listener, and the client settings."""

    listener: str
    client: Callable[[], ClientSettings]


class BrokerPeers:
    """Sends requests to other brokers. All calls come from the event loop."""

    def __init__(self, image: ClusterImage, access: PeerAccess, system: System) -> None:
        self._image = image
        self._listener = access.listener
        self._lines = Lines(access.client, system)
        self._addresses: dict[int, Address] = {}

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

        Requests of a lane are answered in order; different lanes do not wait for each other.
        ``timeout_ms`` is how long the other broker may hold the request, in addition to
        request.timeout.ms. A KafkaError that is not ambiguous means that nothing was sent.
        """
        connection = await self._lines.connection(self._address(node_id), lane)
        return await connection.request(
            request, version_min=version or 0, version_max=version, timeout_ms=timeout_ms or 0
        )

    def forget(self, node_id: int) -> None:
        """Close the connections to a broker; pending requests fail."""
        address = self._addresses.pop(node_id, None)
        if address is not None:
            self._lines.drop(address)

    def renew(self) -> None:
        """Use changed certificates for new connections."""
        self._lines.renew()

    async def close(self) -> None:
        await self._lines.close()

    def _address(self, node_id: int) -> Address:
        """Fenced brokers included: they can tell best whether they can answer."""
        broker = self._image.broker(node_id)
        node = None if broker is None else broker.node(self._listener)
        if node is None:
            known = "is not registered" if broker is None else "has no such listener"
            why = f"broker {node_id} {known} (listener {self._listener})"
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, why)
        address = Address(node.host, node.port)
        if self._addresses.get(node_id, address) != address:
            self.forget(node_id)  # it has restarted at another address
        self._addresses[node_id] = address
        return address
