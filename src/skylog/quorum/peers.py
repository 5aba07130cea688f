"""Connections to other replicas: one for fetches, which wait at the leader, one for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from skylog.client.connection import ClientConnection
from skylog.client.lines import Lines
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.logging import get_logger
from skylog.kernel.system import System
from skylog.quorum import messages as m
from skylog.quorum.client_codec import from_wire, to_wire
from skylog.quorum.effects import Peer
from skylog.quorum.outgoing import is_fetch
from skylog.quorum.voters import Endpoint
from skylog.wire.messages.api_versions_request import ApiVersionsRequest

_logger = get_logger("quorum.peers")
# From these versions on replicas send their directory ids and hold pre-votes.
_VERSION_MIN: Final[dict[type, int]] = {m.VoteRequest: 2, m.FetchRequest: 17}
KRAFT_VERSION: Final = "kraft.version"
_FETCHES: Final = "fetch"


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """How other controllers are reached and how much is fetched from them at once."""

    client: Callable[[], ClientSettings]
    cluster_id: str
    listener: str
    wait_ms: int = 500
    fetch_bytes_max: int = 8 * 1024 * 1024
    snapshot_bytes_max: int = 8 * 1024 * 1024


class Peers:
    """Sends requests to other replicas. All calls come from the event loop."""

    def __init__(self, settings: PeerSettings, system: System) -> None:
        self._settings = settings
        self._lines = Lines(settings.client, system)
        # Addresses of nodes formatted for another cluster, which never changes.
        self.strangers: set[Address] = set()

    async def ask(self, peer: Peer, request: m.PeerRequest) -> m.PeerResponse | None:
        """The response; None if there is none, or it is empty."""
        settings = self._settings
        fetch = is_fetch(request)
        snapshot = isinstance(request, m.FetchSnapshotRequest)
        bytes_max = settings.snapshot_bytes_max if snapshot else settings.fetch_bytes_max
        message = to_wire(request, settings.cluster_id, settings.wait_ms, bytes_max)
        try:
            connection = await self._connection(peer.endpoint, fetch=fetch)
            version_min = _VERSION_MIN.get(type(request), 0)
            answer = await connection.request(message, version_min=version_min)
            self._note_cluster(connection.address, answer)
            return from_wire(request, answer, settings.listener)
        except (KafkaError, ProtocolError, OSError) as error:
            kind = type(request).__name__
            _logger.debug("no answer", peer=peer.id, request=kind, why=str(error))
            return None

    async def kraft_versions(self, endpoint: Endpoint) -> tuple[int, int] | None:
        """The protocol versions that a node supports; None if it does not answer."""
        try:
            connection = await self._connection(endpoint, fetch=False)
            asked = ApiVersionsRequest(
                client_software_name="skylog", client_software_version="0.1.0"
            )
            answer: Any = await connection.request(asked, version_min=4)
        except (KafkaError, OSError):
            return None
        for feature in answer.supported_features:
            if feature.name == KRAFT_VERSION:
                return feature.min_version, feature.max_version
        return 0, 0

    async def _connection(self, endpoint: Endpoint, *, fetch: bool) -> ClientConnection:
        address = Address(endpoint.host, endpoint.port)
        return await self._lines.connection(address, _FETCHES if fetch else "")

    def _note_cluster(self, address: Address, answer: Any) -> None:
        if answer.error_code != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self.strangers.discard(address)
        elif address not in self.strangers:
            self.strangers.add(address)
            own = self._settings.cluster_id
            _logger.error("controller of another cluster", address=str(address), own=own)

    def renew(self) -> None:
        """Use changed certificates for new connections."""
        self._lines.renew()

    async def close(self) -> None:
        await self._lines.close()
