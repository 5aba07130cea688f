"""A consumer group: its members, their target assignment, and the owners of partitions.

Only the records of the group change it (``records.py``), so a new leader of the partition has the
same group. The volatile fields at the end are lost with the leader, which costs at most one more
check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from skylog.groups.consumer.member import ConsumerMember, MemberState, Owned, Partitions
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid

NO_EPOCH: Final = -1


class ConsumerGroupState(Enum):
    """The states of a consumer group, as clients see their names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that matched, when, and in which metadata version."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """One group; ``target`` is the assignment that every member is reconciled with."""

    group_id: str
    epoch: int = 1
    metadata_hash: int = 0
    target_epoch: int = 1
    target_timestamp_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    target: dict[str, Partitions] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    # A record of Kafka before 4.1, to be deleted with the next change.
    has_partition_metadata: bool = False
    # Totals over the members.
    subscribers: Counter[str] = field(default_factory=Counter)
    regex_subscribers: Counter[str] = field(default_factory=Counter)
    assignors: Counter[str] = field(default_factory=Counter)
    protocols: Counter[str] = field(default_factory=Counter)
    classic_count: int = 0
    metadata_bytes: int = 0
    owned_epochs: dict[tuple[Uuid, int], int] = field(default_factory=dict)
    # Volatile fields.
    metadata_checked: bool = False
    resolving: bool = False
    resolve_from_ms: int = 0
    waits: dict[tuple[str, str], int] = field(default_factory=dict)

    # Changes, for records only

    def put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._count(old, -1)
        self.members[member.member_id] = member
        self._count(member, 1)
        for owned in (member.assigned, member.revoking):
            for key in _keys(owned):
                self.owned_epochs[key] = max(member.epoch, self.owned_epochs.get(key, member.epoch))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, -1)
        for kind in ("join", "sync"):
            self.waits.pop((member_id, kind), None)
        if member.instance_id is not None and (
            self.static_members.get(member.instance_id) == member_id
        ):
            del self.static_members[member.instance_id]

    def _count(self, member: ConsumerMember, sign: int) -> None:
        _add(self.subscribers, member.topics, sign)
        _add(self.regex_subscribers, [member.regex] if member.regex else (), sign)
        _add(self.assignors, [] if member.assignor is None else [member.assignor], sign)
        self.metadata_bytes += sign * member.metadata_bytes
        if member.classic is not None:
            self.classic_count += sign
            _add(self.protocols, {name for name, _ in member.classic.protocols}, sign)
        if sign < 0:
            for owned in (member.assigned, member.revoking):
                for key in _keys(owned):
                    if self.owned_epochs.get(key) == member.epoch:
                        del self.owned_epochs[key]

    # Questions

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        if instance_id is None or instance_id not in self.static_members:
            return None
        return self.members[self.static_members[instance_id]]

    def owned_epoch(self, topic_id: Uuid, partition: int) -> int:
        """The epoch of the member that owns a partition, -1 if there is none."""
        return self.owned_epochs.get((topic_id, partition), NO_EPOCH)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribers or any(topic in r.topics for r in self.regexes.values())

    def subscribed_after(
        self, old: Iterable[ConsumerMember], new: ConsumerMember | None
    ) -> set[str]:
        """The topics of the group once ``new`` has replaced the old members."""
        names, regexes = self.subscribers.copy(), self.regex_subscribers_after(old, new)
        for member in old:
            _add(names, member.topics, -1)
        found = set(names)
        if new is not None:
            found |= new.topics
        for regex, resolved in self.regexes.items():
            if regex in regexes:
                found |= resolved.topics
        return found

    def regex_subscribers_after(
        self, old: Iterable[ConsumerMember], new: ConsumerMember | None
    ) -> Counter[str]:
        counts = self.regex_subscribers.copy()
        _add(counts, [member.regex for member in old if member.regex], -1)
        _add(counts, [new.regex] if new is not None and new.regex else (), 1)
        return counts

    def preferred_assignor(
        self, default: str, old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str:
        """The assignor that most members prefer."""
        counts = self.assignors.copy()
        if old is not None and old.assignor is not None:
            _add(counts, [old.assignor], -1)
        if new is not None and new.assignor is not None:
            _add(counts, [new.assignor], 1)
        return max(counts, key=counts.__getitem__, default=default)

    def target_of(self, member: ConsumerMember) -> Partitions:
        """A static member that has returned has the target of its last incarnation."""
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id)
        return self.target.get(member_id or "", {})

    def is_waiting_for_others(self, member: ConsumerMember) -> bool:
        """Whether others still own a part of the member's target."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, {})
            and self.owned_epoch(topic_id, partition) != NO_EPOCH
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        if protocol_type != "consumer":
            return False
        return any(self.protocols[name] == self.classic_count for name in names)


def _keys(owned: Owned) -> Iterable[tuple[Uuid, int]]:
    return ((topic_id, partition) for topic_id, found in owned.items() for partition in found)


def _add(counts: Counter[str], names: Iterable[str], sign: int) -> None:
    """Count up or down; a name with count zero is dropped."""
    for name in names:
        counts[name] += sign
        if counts[name] <= 0:
            del counts[name]
