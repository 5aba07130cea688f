"""The states of the quorum machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import Endpoint, ReplicaKey


@dataclass(frozen=True, slots=True)
class Tally:
    """The votes so far, by voter id."""

    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()

    def with_vote(self, voter_id: int, *, granted: bool) -> Tally:
        if voter_id in self:
            return self
        if granted:
            return Tally(self.granted | {voter_id}, self.rejected)
        return Tally(self.granted, self.rejected | {voter_id})

    def __contains__(self, voter_id: int) -> bool:
        return voter_id in self.granted or voter_id in self.rejected


@dataclass(slots=True)
class Progress:
    """How far a replica's log is known to reach, and when it last fetched; −1: never."""

    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    # When it last fetched anything, snapshots included: this keeps a leader in office.
    heard_ms: int = -1
    # When it last acknowledged the leader.
    told_ms: int = -1
    # Where the leader's log ended at the last fetch.
    leader_end_offset: int = -1


@dataclass(frozen=True, slots=True)
class Unattached:
    """Knows an epoch, perhaps its leader, but not how to reach it; may have voted."""

    epoch: int
    leader_id: int | None
    voted: ReplicaKey | None
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Prospective:
    """Holds a pre-vote, so that a returning voter does not disturb the quorum (KIP-996)."""

    epoch: int
    leader_id: int | None
    voted: ReplicaKey | None
    endpoints: tuple[Endpoint, ...]
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
    since_ms: int
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    high_watermark: int | None = None

    def of(self, key: ReplicaKey) -> Progress:
        found = self.progress.get(key)
        if found is None:
            found = self.progress[key] = Progress(key)
        return found


@dataclass(slots=True)
class SnapshotFetch:
    """A snapshot that is being fetched, and how much of it is here."""

    id: SnapshotId
    position: int = 0


@dataclass(slots=True)
class Follower:
    """Fetches from the leader."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    endpoints: tuple[Endpoint, ...]
    deadline_ms: int
    # Once it has fetched, it does not help to replace the leader.
    has_fetched: bool = False
    snapshot: SnapshotFetch | None = None
    leader_high_watermark: int = -1
    update_ms: int = 0


@dataclass(frozen=True, slots=True)
class Resigned:
    """Led this epoch and no longer does; it neither votes nor writes in it."""

    epoch: int
    deadline_ms: int
    successors: tuple[ReplicaKey, ...] = ()
    told: frozenset[int] = frozenset()


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned
