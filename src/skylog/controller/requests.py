"""What the controller machine is asked: Kafka's own requests, and what its timers bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from skylog.wire.schema import Message


def no_charge(_partitions: int) -> None:
    """Nobody limits how fast this caller changes partitions."""


@dataclass(frozen=True, slots=True)
class ControllerRequest:
    """A request of a client or broker, already authorized, with what a pure machine cannot have."""

    message: Message
    version: int
    # Randomness: the ids and placements of this request are drawn from it.
    seed: bytes = b""
    # The log's end: a broker's epoch is the offset at which its registration is written.
    next_offset: int = 0
    # Counts changed partitions against the caller's quota; raises THROTTLING_QUOTA_EXCEEDED.
    charge: Callable[[int], None] = no_charge


@dataclass(frozen=True, slots=True)
class Loaded:
    """The machine has been loaded and is active."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """A broker's session has had its time, unless a heartbeat came since."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ElectPreferredLeaders:
    """Give partitions back to their preferred leaders."""


@dataclass(frozen=True, slots=True)
class ElectUncleanLeaders:
    """Elect leaders that are not in sync where nobody else is left and it is allowed."""


@dataclass(frozen=True, slots=True)
class ReplaceOfflineReplicas:
    """Look for offline replicas of diskless partitions and give some of them to other brokers."""


@dataclass(frozen=True, slots=True)
class WarnOfPlacement:
    """Tell of diskless partitions that a rack's failure would hurt more than it has to."""


Request = (
    ControllerRequest
    | Loaded
    | SessionExpired
    | ElectPreferredLeaders
    | ElectUncleanLeaders
    | ReplaceOfflineReplicas
    | WarnOfPlacement
)


@dataclass(frozen=True, slots=True)
class Contact:
    """A broker was heard. Volatile: a new leader of the quorum starts to count anew."""

    broker_id: int
    epoch: int
    now_ms: int
    metadata_offset: int
    # The offset others must have reached before this broker may go; -1 while it stays.
    controlled_shutdown_offset: int = -1


@dataclass(frozen=True, slots=True)
class Departed:
    """A broker was told that it may go: another of its id may come at once."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ReplicaWatch:
    """What the last look for offline replicas found; a new leader of the quorum starts anew."""

    # Since when each registered broker that is not active has been away.
    offline_since: Mapping[int, int] = field(default_factory=dict)
    registered: frozenset[int] = frozenset()
    # When a broker registered that had not been known.
    newcomer_ms: int = 0
    # When replicas were last replaced, and how many in all.
    replaced_ms: int = 0
    replaced: int = 0


Volatile = Contact | Departed | ReplicaWatch
