"""A member of a consumer group as a value: its subscription, assignment and epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from skylog.groups.members import Protocols
from skylog.kernel.ids import Uuid

# Partitions of a topic, each with the epoch in which the member got it.
Owned = Mapping[Uuid, Mapping[int, int]]
# Partitions of a topic.
Partitions = Mapping[Uuid, frozenset[int]]

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2


class MemberState(IntEnum):
    """How far a member has been reconciled; numbers are those of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it still owns partitions that it must revoke
    UNRELEASED_PARTITIONS = 2  # others still own partitions of its target
    UNKNOWN = 127  # written by a later release

    @classmethod
    def of(cls, number: int) -> MemberState:
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """What a member that still uses the classic protocol sent when it joined."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. ``regex`` is empty for none; ``classic`` is set for the classic protocol."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    classic: ClassicMetadata | None = None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    @property
    def metadata_bytes(self) -> int:
        """The memory that the coordinator keeps for this member's metadata."""
        size = len(self.regex) + sum(map(len, self.topics))
        if self.classic is not None:
            size += sum(len(name) + len(data) for name, data in self.classic.protocols)
        return size

    @property
    def first_protocol(self) -> tuple[str, bytes]:
        """The protocol that a classic member is told to use: its own first choice."""
        return ("", b"") if self.classic is None else self.classic.protocols[0]

    def partition_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch since which the member owns a partition; None if it does not."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch


def with_epoch(partitions: Partitions, epoch: int) -> Owned:
    return {topic_id: dict.fromkeys(sorted(found), epoch) for topic_id, found in partitions.items()}
