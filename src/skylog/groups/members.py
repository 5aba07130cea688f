"""A classic group as a value: its members, state and protocol votes.

``ClassicGroup`` knows the rules of membership but no requests, timers or records. Members are
immutable, so ``draft`` is a cheap copy: a request changes the draft, and the machine replaces the
group by it only when it applies the request's result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError, invariant
from skylog.wire.codec import decode_at
from skylog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
Protocols = tuple[tuple[str, bytes], ...]
_VERSION_BYTES: Final = 2


class GroupState(Enum):
    """The states of a classic group, as clients see their names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


PREVIOUS_STATES: Final = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
}


@dataclass(frozen=True, slots=True)
class Member:
    """One member; the two ``awaiting`` flags mean that one of its requests is parked."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: bool = False
    awaiting_sync: bool = False
    is_new: bool = False

    @property
    def protocol_names(self) -> Iterable[str]:
        """Each name once, in the member's order of preference."""
        return list(dict.fromkeys(name for name, _ in self.protocols))

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol_name), b"")

    @property
    def metadata_bytes(self) -> int:
        """The memory that the coordinator keeps for this member's metadata."""
        return sum(len(name) + len(data) for name, data in self.protocols)

    @property
    def excused_from_heartbeat(self) -> bool:
        """A waiting member is alive, but a new one may be the leftover of a resent request."""
        return not self.is_new and (self.awaiting_join or self.awaiting_sync)


@dataclass(slots=True)
class ClassicGroup:
    """One group. ``subscribed_topics`` is None if the coordinator cannot know them."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    subscribed_topics: frozenset[str] | None = None
    new_member_added: bool = False
    join_deadline_ms: int = -1
    sync_deadline_ms: int = -1
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: dict[str, None] = field(default_factory=dict)
    pending_syncs: dict[str, None] = field(default_factory=dict)
    supporters: Counter[str] = field(default_factory=Counter)
    joins_awaited: int = 0  # members whose JoinGroup is parked
    metadata_bytes: int = 0  # of all members

    def draft(self) -> ClassicGroup:
        return replace(
            self,
            members=self.members.copy(),
            static_members=self.static_members.copy(),
            pending_joins=self.pending_joins.copy(),
            pending_syncs=self.pending_syncs.copy(),
            supporters=self.supporters.copy(),
        )

    def transition(self, state: GroupState, now_ms: int) -> None:
        invariant(
            self.state in PREVIOUS_STATES[state],
            f"group {self.group_id} cannot go from {self.state.value} to {state.value}",
        )
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    # Members

    def put(self, member: Member) -> None:
        """Add a member, or replace it by its new version."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._discount(old)
        elif not self.members:
            self.protocol_type = member.protocol_type
        self.members[member.member_id] = member
        self.supporters.update(member.protocol_names)
        self.joins_awaited += member.awaiting_join
        self.metadata_bytes += member.metadata_bytes
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member | None:
        """Remove a pending or full member; the next one becomes leader."""
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._discount(member)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, old_id: str, member: Member) -> None:
        """Replace a static member, also as leader, by its new incarnation."""
        was_leader, was_pending = self.leader == old_id, old_id in self.pending_syncs
        self.remove(old_id)
        self.put(member)
        if was_leader:
            self.leader = member.member_id
        if was_pending:
            self.pending_syncs[member.member_id] = None

    def _discount(self, member: Member) -> None:
        self.joins_awaited -= member.awaiting_join
        self.metadata_bytes -= member.metadata_bytes
        self.supporters.subtract(member.protocol_names)
        self.supporters += Counter()  # drops names that no member supports any more

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Refuse an unknown member, and an instance that another member has replaced."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is not None and current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    @property
    def all_joined(self) -> bool:
        return self.joins_awaited == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader; False if there is none."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)
        if leader is not None and leader.awaiting_join:
            return True
        joined = next((m.member_id for m in self.members.values() if m.awaiting_join), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    # Protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        everyone = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.supporters[name] == everyone for name in names
        )

    def select_protocol(self) -> str:
        """The protocol that most members prefer among those that all of them support."""
        candidates = {name for name, count in self.supporters.items() if count == len(self.members)}
        votes = Counter(
            next(name for name in member.protocol_names if name in candidates)
            for member in self.members.values()
        )
        return max(votes, key=votes.__getitem__)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.transition(
            GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms
        )

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The topics in the members' subscriptions; None if they cannot be decoded."""
        if not self.uses_consumer_protocol:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in _topics(member.metadata(self.protocol_name))
            )
        except ProtocolError:
            return None


def _topics(subscription: bytes) -> list[str]:
    # A two-byte version, then fields of which those of version 0 come first in every version.
    return decode_at(ConsumerProtocolSubscription, subscription, 0, _VERSION_BYTES)[0].topics
