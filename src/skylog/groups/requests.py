"""What the group machine is asked and what it notes: requests, timers, volatile events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from skylog.groups.members import ClassicGroup
from skylog.kernel.ids import Uuid
from skylog.replicated.machine import InTransaction

MessageT_co = TypeVar("MessageT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ClientContext:
    """Who asks, and in which version of the API; ``client_host`` is as Java writes addresses."""

    version: int
    client_id: str | None = None
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class Request(Generic[MessageT_co]):
    """A client's request; ``member_suffix`` makes the member id, should one be due."""

    message: MessageT_co
    version: int
    client_id: str = ""
    client_host: str = ""
    member_suffix: str = ""
    # OffsetFetch: what is pending in a transaction is not answered with what was before it.
    require_stable: bool = False
    # OffsetCommit: the offsets count once the transaction has committed.
    transaction: InTransaction | None = None


# What timers and the broker submit. A timer may come late, when its deadline has moved or its
# group has gone on: each handler looks at the deadline in the state first.


@dataclass(frozen=True, slots=True)
class Loaded:
    """The partition has been loaded: members' sessions begin anew."""


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
    """A pass over all groups; ``rest`` is what an unfinished pass has left, None begins one."""

    rest: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Topics, by name and id, that exist no more; ``rest`` as in ``ExpireOffsets``."""

    topics: tuple[tuple[str, Uuid], ...]
    rest: tuple[str, ...] | None = None


# Volatile events.


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """The group as a request has left it; what of it must last is in the request's records."""

    group: ClassicGroup


@dataclass(frozen=True, slots=True)
class SessionSet:
    """A member was heard of: it has until ``deadline_ms``; its timer comes at ``timer_ms``."""

    group_id: str
    member_id: str
    deadline_ms: int
    timer_ms: int


@dataclass(frozen=True, slots=True)
class SessionEnded:
    group_id: str
    member_id: str
