"""What fetchers need of their broker, and their settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from skylog.kernel.clock import Clock
    from skylog.kernel.errors import KafkaError
    from skylog.replication.partition import Partition
    from skylog.replication.throttle import ReplicationQuota
    from skylog.replication.tier_state import RemoteState
    from skylog.wire.schema import Message


class Peers(Protocol):
    """Sends requests to other brokers."""

    async def send(
        self,
        node_id: int,
        request: Message,
        version: int | None = None,
        *,
        lane: str = "",
        timeout_ms: int | None = None,
    ) -> Any: ...


class RemoteTier(Protocol):
    """The segments of tiered topics in the object store. All errors are ``KafkaError``."""

    @property
    def from_last_tiered_offset(self) -> bool:
        """``follower.fetch.last.tiered.offset.enable``: an empty replica fetches only what waits
        for its upload (KIP-1023)."""
        ...

    async def state_at(self, partition: Partition, epoch: int, offset: int) -> RemoteState | None:
        """Download what a log needs that continues behind the segment with the record ``offset``
        of ``epoch``; None if no such segment is known."""
        ...

    def rebuilt(self, topic: str, error: KafkaError | None) -> None:
        """Counts the replicas that were set up from the object store, and the failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How followers fetch; names and defaults are Kafka's ``replica.fetch.*``."""

    node_id: int
    partition_bytes_max: int = 1 << 20
    response_bytes_max: int = 10 << 20
    bytes_min: int = 1
    wait_ms_max: int = 500
    backoff_ms: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPorts:
    """What fetchers need of their broker."""

    peers: Peers
    clock: Clock
    broker_epoch: Callable[[], int]
    quota: ReplicationQuota
    # Counts the fetched bytes.
    fetched: Callable[[str, int], None] = lambda topic, size: None
    # No requests before this broker has an epoch.
    started: asyncio.Event = field(default_factory=asyncio.Event)
    # None: tiered storage is off.
    remote_tier: RemoteTier | None = None
