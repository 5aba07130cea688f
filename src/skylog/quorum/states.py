"""The states of the quorum machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from skylog.quorum.voters import ReplicaKey


@dataclass(frozen=True, slots=True)
class Tally:
    """The answers so far, by voter id."""

    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()

    def with_vote(self, voter_id: int, *, granted: bool) -> Tally:
        if voter_id in self.granted or voter_id in self.rejected:
            return self
        if granted:
            return Tally(self.granted | {voter_id}, self.rejected)
        return Tally(self.granted, self.rejected | {voter_id})


@dataclass(slots=True)
class Progress:
    """How far a voter's log is known to reach; −1 before anything is known."""

    key: ReplicaKey
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class Unattached:
    """Knows an epoch, perhaps its leader, but not how to reach it; may have voted."""

    epoch: int
    leader_id: int | None
    voted: ReplicaKey | None
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Prospective:
    """Asks whether it would win, so that a lone returner disturbs nobody (KIP-996)."""

    epoch: int
    leader_id: int | None
    voted: ReplicaKey | None
    tally: Tally
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """Has begun an epoch and voted for itself."""

    epoch: int
    tally: Tally
    deadline_ms: int


@dataclass(slots=True)
class Leader:
    """Leads; nothing of earlier epochs counts as committed before a record of this one."""

    epoch: int
    epoch_start_offset: int
    progress: dict[int, Progress] = field(default_factory=dict)
    high_watermark: int | None = None


@dataclass(frozen=True, slots=True)
class Follower:
    """Fetches from the leader."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Resigned:
    """Led this epoch and no longer does; it neither votes nor writes in it."""

    epoch: int
    deadline_ms: int


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned
