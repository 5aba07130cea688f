"""Requests of timers and the broker to consumer groups, and volatile events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skylog.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The response to a heartbeat, and the patterns to resolve because of it."""

    response: ConsumerGroupHeartbeatResponse
    regexes: tuple[str, ...] = ()


# Requests.


@dataclass(frozen=True, slots=True)
class EndRebalance:
    """A member was asked, in this epoch, to revoke partitions."""

    group_id: str
    member_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class EndWait:
    """A classic member was told to rejoin, or must sync."""

    group_id: str
    member_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class RegexesResolved:
    """The topics that matched; empty if they could not be resolved."""

    group_id: str
    version: int = 0
    timestamp_ms: int = 0
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Topics, by name, that were created, deleted, or got partitions or other replicas."""

    names: frozenset[str]


# Volatile events.


@dataclass(frozen=True, slots=True)
class MetadataChecked:
    """The group has seen the current topics; or it must check again."""

    group_id: str
    checked: bool = True


@dataclass(frozen=True, slots=True)
class Resolving:
    """Whether the group's patterns are being resolved, and when they may be resolved again."""

    group_id: str
    resolving: bool
    from_ms: int = 0


@dataclass(frozen=True, slots=True)
class WaitSet:
    """A classic member has until then; None: it has done what was required."""

    group_id: str
    member_id: str
    kind: str
    deadline_ms: int | None
