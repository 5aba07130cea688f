"""How a node takes part in the metadata quorum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from skylog.client.settings import ClientSettings
from skylog.kernel.settings.sections import QuorumSettings
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.peers import PeerSettings
from skylog.quorum.replica import QuorumOptions, Timeouts
from skylog.quorum.voters import NO_VOTERS, Endpoint, VoterSet, parse_servers, parse_voters

CONTROLLER_LISTENER: Final = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """How this node takes part; ``endpoints`` are those of its own controller."""

    endpoints: tuple[Endpoint, ...]
    log: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    timeouts: Timeouts = field(default_factory=Timeouts)
    voters: VoterSet = NO_VOTERS
    bootstrap: tuple[Endpoint, ...] = ()
    listener: str = CONTROLLER_LISTENER
    auto_join: bool = False
    # Whether this node is a controller; otherwise it only follows.
    controller: bool = True
    client: Callable[[], ClientSettings] = lambda: ClientSettings(())
    fetch_bytes_max: int = 8 * 1024 * 1024
    snapshot_bytes_max: int = 8 * 1024 * 1024

    @classmethod
    def from_settings(
        cls,
        settings: QuorumSettings,
        endpoints: Sequence[Endpoint],
        listener: str = CONTROLLER_LISTENER,
        client: Callable[[], ClientSettings] | None = None,
        *,
        controller: bool = True,
    ) -> QuorumConfig:
        """``listener`` is the first of controller.listener.names, which controllers use."""
        timeouts = Timeouts(
            settings.election_timeout_ms,
            settings.fetch_timeout_ms,
            settings.request_timeout_ms,
            settings.retry_backoff_ms,
        )
        return cls(
            tuple(endpoints),
            MetadataLogConfig.from_settings(settings),
            timeouts,
            parse_voters(settings.voters, listener),
            parse_servers(settings.bootstrap_servers, listener),
            listener,
            settings.auto_join and controller,
            controller,
            client or (lambda: ClientSettings((), request_timeout_ms=settings.request_timeout_ms)),
            fetch_bytes_max=settings.fetch_bytes_max,
            snapshot_bytes_max=settings.snapshot_fetch_bytes_max,
        )

    @property
    def options(self) -> QuorumOptions:
        return QuorumOptions(
            self.timeouts, self.voters, self.bootstrap, self.listener, self.auto_join
        )

    def peers(self, cluster_id: str) -> PeerSettings:
        return PeerSettings(
            self.client,
            cluster_id,
            self.listener,
            fetch_bytes_max=self.fetch_bytes_max,
            snapshot_bytes_max=self.snapshot_bytes_max,
        )
