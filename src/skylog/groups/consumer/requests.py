"""What timers and the broker ask of consumer groups, and what is noted about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skylog.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer to a heartbeat, and the patterns that are to be looked up again because of it."""

    response: ConsumerGroupHeartbeatResponse
    regexes: tuple[str, ...] = ()


# Requests.


@dataclass(frozen=True, slots=True)
class EndRebalance:
    """A member was asked, in this epoch, to give up partitions."""

    group_id: str
    member_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class EndWait:
    """A member of the classic protocol was told to join again, or was to sync."""

    group_id: str
    member_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class RegexesResolved:
    """The topics that matched; nothing when they could not be looked up."""

    group_id: str
    version: int = 0
    timestamp_ms: int = 0
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Topics, by name, that came, went, or got partitions or other replicas."""

    names: frozenset[str]


# Volatile events.


@dataclass(frozen=True, slots=True)
class MetadataChecked:
    """The group has seen the topics as they are now; or it has to look again."""

    group_id: str
    checked: bool = True


@dataclass(frozen=True, slots=True)
class Resolving:
    """Whether the group's patterns are being looked up, and from when on they may be again."""

    group_id: str
    resolving: bool
    from_ms: int = 0


@dataclass(frozen=True, slots=True)
class WaitSet:
    """A member of the classic protocol has until then; None: it has done what it was to do."""

    group_id: str
    member_id: str
    kind: str
    deadline_ms: int | None
