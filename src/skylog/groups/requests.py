"""Input of the group machine: requests, timers, volatile events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from skylog.groups.members import ClassicGroup
from skylog.kernel.ids import Uuid
from skylog.replicated.machine import InTransaction

MessageT_co = TypeVar("MessageT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ClientContext:
    """The caller and the API version; ``client_host`` is in Java's notation."""

    version: int
    client_id: str | None = None
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class Request(Generic[MessageT_co]):
    """A client's request; ``member_suffix`` is used if a member id has to be generated."""

    message: MessageT_co
    version: int
    client_id: str = ""
    client_host: str = ""
    member_suffix: str = ""
    # OffsetFetch: partitions with pending transactional offsets are not answered with the old
    # offset.
    require_stable: bool = False
    # OffsetCommit: the offsets count once the transaction has committed.
    transaction: InTransaction | None = None


# Submitted by timers and the broker. A timer may fire late, when its deadline has moved or its
# group has changed: each handler checks the deadline in the state first.


@dataclass(frozen=True, slots=True)
class Loaded:
    """The partition has been loaded: members' sessions restart."""


@dataclass(frozen=True, slots=True)
class CheckSession:
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class EndInitialDelay:
    """A new group has waited ``delay_ms`` for members; it may wait ``remaining_ms`` more."""

    group_id: str
    delay_ms: int
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class EndJoin:
    group_id: str


@dataclass(frozen=True, slots=True)
class EndSync:
    group_id: str


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """A pass over all groups; ``rest`` is the remainder of an unfinished pass, None starts one."""

    rest: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Deleted topics, by name and id; ``rest`` as in ``ExpireOffsets``."""

    topics: tuple[tuple[str, Uuid], ...]
    rest: tuple[str, ...] | None = None


# Volatile events.


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """The group after a request; what must be durable is in the request's records."""

    group: ClassicGroup


@dataclass(frozen=True, slots=True)
class SessionSet:
    """A member is alive: it has until ``deadline_ms``; its timer fires at ``timer_ms``."""

    group_id: str
    member_id: str
    deadline_ms: int
    timer_ms: int


@dataclass(frozen=True, slots=True)
class SessionEnded:
    group_id: str
    member_id: str
