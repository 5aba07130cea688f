"""Input of the controller machine: Kafka's own requests, and timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from skylog.wire.schema import Message


def no_charge(_partitions: int) -> None:
    """Does not limit partition changes of this caller."""


@dataclass(frozen=True, slots=True)
class ControllerRequest:
    """An authorized request of a client or broker, with the input that a pure machine lacks."""

    message: Message
    version: int
    # Randomness: the ids and placements of this request are derived from it.
    seed: bytes = b""
    # The log end offset: a broker's epoch is the offset of its registration record.
    next_offset: int = 0
    # Charges changed partitions to the caller's quota; raises THROTTLING_QUOTA_EXCEEDED.
    charge: Callable[[int], None] = no_charge


@dataclass(frozen=True, slots=True)
class Loaded:
    """The machine has been loaded and is active."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """A broker's session has expired, unless a heartbeat arrived since."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ElectPreferredLeaders:
    """Return leadership to preferred leaders."""


@dataclass(frozen=True, slots=True)
class ElectUncleanLeaders:
    """Elect out-of-sync leaders where no other replica is left and it is allowed."""


@dataclass(frozen=True, slots=True)
class ReplaceOfflineReplicas:
    """Find offline replicas of diskless partitions and move some of them to other brokers."""


@dataclass(frozen=True, slots=True)
class WarnOfPlacement:
    """Warn about diskless partitions with avoidable exposure to a rack failure."""


@dataclass(frozen=True, slots=True)
class LiftEpochs:
    """The next step of lifting leader epochs after a restore."""


Request = (
    ControllerRequest
    | Loaded
    | SessionExpired
    | ElectPreferredLeaders
    | ElectUncleanLeaders
    | ReplaceOfflineReplicas
    | WarnOfPlacement
    | LiftEpochs
)


@dataclass(frozen=True, slots=True)
class Contact:
    """A broker sent a heartbeat. Volatile: a new leader of the quorum starts over."""

    broker_id: int
    epoch: int
    now_ms: int
    metadata_offset: int
    # The offset that others must have reached before this broker may shut down; -1 if it does not.
    controlled_shutdown_offset: int = -1


@dataclass(frozen=True, slots=True)
class Departed:
    """A broker was told to shut down: another one with its id may register at once."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ReplicaWatch:
    """The result of the last check for offline replicas; a new leader of the quorum starts over."""

    # Since when each registered but inactive broker has been down.
    offline_since: Mapping[int, int] = field(default_factory=dict)
    registered: frozenset[int] = frozenset()
    # When an unknown broker last registered.
    newcomer_ms: int = 0
    # When replicas were last replaced, and how many in total.
    replaced_ms: int = 0
    replaced: int = 0


Volatile = Contact | Departed | ReplicaWatch
