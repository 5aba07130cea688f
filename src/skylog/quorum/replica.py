"""One replica of the metadata log: its state, and the transitions. Pure.

Decisions made here are carried out elsewhere. ``machine.py`` has the table of all transitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skylog.kernel.errors import invariant
from skylog.quorum.control import QuorumRecords
from skylog.quorum.effects import Effect, Peer, SaveElection
from skylog.quorum.election import ElectionState
from skylog.quorum.messages import EpochEnd, Leadership
from skylog.quorum.outgoing import Outgoing
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Tally,
    Unattached,
)
from skylog.quorum.voters import NO_VOTERS, Endpoint, Voter, VoterSet

if TYPE_CHECKING:
    from skylog.kernel.rng import Random

# Servers known only by address get ids that no node can have, as in Kafka.
_FIRST_BOOTSTRAP_ID: Final = -2


class LogView(Protocol):
    """The machine's current view of the log."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int: ...

    @property
    def quorum(self) -> QuorumRecords:
        """The contents of its control records, committed or not."""
        ...

    @property
    def voters_offset(self) -> int:
        """The offset of the latest voters; −1 if there have been none."""
        ...

    @property
    def voters_before(self) -> VoterSet | None:
        """The voters before the latest change, if the log still has them."""
        ...

    @property
    def earliest_snapshot(self) -> SnapshotId | None: ...

    @property
    def latest_snapshot(self) -> SnapshotId | None: ...

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """None if the snapshot is not here."""
        ...

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch up to this one in the log, and its end."""
        ...


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Kafka's ``controller.quorum.….ms``."""

    election_ms: int = 1000
    fetch_ms: int = 2000
    request_ms: int = 2000
    retry_ms: int = 20


@dataclass(frozen=True, slots=True)
class QuorumOptions:
    """How a replica finds the others; static voters count until the log names any."""

    timeouts: Timeouts = Timeouts()
    voters: VoterSet = NO_VOTERS
    bootstrap: tuple[Endpoint, ...] = ()
    listener: str = "CONTROLLER"
    auto_join: bool = False


class Replica:
    """The state that all parts of the machine share."""

    def __init__(self, local: Voter, log: LogView, options: QuorumOptions, rng: Random) -> None:
        self.local = local
        self.key = local.key
        self.log = log
        self.options = options
        self.rng = rng
        self.state: State = Unattached(0, None, None, 0)
        self.high_watermark = 0
        # How far the log is durable: a fetch acknowledges everything before it.
        self.synced_offset = 0
        timeouts = options.timeouts
        self.outgoing = Outgoing(timeouts.request_ms, timeouts.retry_ms)
        self.saved: ElectionState | None = None
        # Values derived from the voters, cached while these stay the same.
        self._voters_seen: tuple[VoterSet, bool, list[tuple[Voter, Peer]]] = (NO_VOTERS, False, [])

    # -- members -------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int | None:
        return self.election(self.state).leader_id

    @property
    def voters(self) -> VoterSet:
        return self.log.quorum.voters or self.options.voters

    @property
    def is_voter(self) -> bool:
        return self._seen()[1]

    def others(self) -> list[tuple[Voter, Peer]]:
        """Every other voter, and how to reach it."""
        return self._seen()[2]

    def _seen(self) -> tuple[VoterSet, bool, list[tuple[Voter, Peer]]]:
        voters = self.voters
        if voters is not self._voters_seen[0]:
            others = []
            for voter in voters.voters:
                endpoint = voter.endpoint(self.options.listener)
                if voter.key.id != self.key.id and endpoint is not None:
                    others.append((voter, Peer(voter.key.id, endpoint)))
            self._voters_seen = (voters, self.key in voters, others)
        return self._voters_seen

    @property
    def may_stand(self) -> bool:
        """Whether it is a voter, or was one and the record of its removal may still be lost.

        The replica with that record may be the only one that can be elected: no voter votes for a
        shorter log.
        """
        if self.is_voter or self.log.voters_offset < self.high_watermark:
            return self.is_voter
        before = self.log.voters_before
        return before is not None and self.key in before

    @property
    def leadership(self) -> Leadership:
        """Included in every response of this replica."""
        state = self.state
        match state:
            case Leader():
                return Leadership(state.epoch, self.key.id, self.local.endpoints)
            case Follower() | Prospective() if state.leader_id is not None:
                return Leadership(state.epoch, state.leader_id, state.endpoints)
        return Leadership(state.epoch, self.leader_id)

    def any_peer(self, now_ms: int) -> Peer | None:
        """A replica that may know the leader."""
        first = _FIRST_BOOTSTRAP_ID
        own = {(each.host, each.port) for each in self.local.endpoints}
        peers = [
            Peer(first - number, each)
            for number, each in enumerate(self.options.bootstrap)
            if (each.host, each.port) not in own
        ]
        peers += [peer for _, peer in self.others()]
        free = [peer for peer in peers if self.outgoing.is_free(peer, now_ms, fetch=True)]
        return free[self.rng.randrange(len(free))] if free else None

    def leader_peer(self) -> Peer | None:
        """The leader's endpoint, as announced by itself or in the voter set."""
        state = self.state
        if not isinstance(state, Follower):
            return None
        known = Voter(self.key, state.endpoints).endpoint(self.options.listener)
        voter = self.voters.get(state.leader_id)
        if known is None and voter is not None:
            known = voter.endpoint(self.options.listener)
        return None if known is None else Peer(state.leader_id, known)

    # -- transitions ---------------------------------------------------------------------------

    def initial(self, saved: ElectionState, now_ms: int) -> State:
        """The first state of a replica with this saved election."""
        deadline = self.election_end(now_ms)
        if saved.epoch < self.log.last_epoch:
            return Unattached(self.log.last_epoch, None, None, deadline)
        if saved.leader_id == self.key.id:
            # What it wrote last may be lost: it must not continue to write in the same epoch.
            return Resigned(saved.epoch, deadline)
        if saved.leader_id is not None and self.voters.get(saved.leader_id) is not None:
            fetch_end = now_ms + self.options.timeouts.fetch_ms
            return Follower(saved.epoch, saved.leader_id, saved.voted, (), fetch_end)
        if saved.leader_id is None and saved.voted == self.key and self.is_voter:
            return Candidate(saved.epoch, self.own_vote(), deadline)
        return Unattached(saved.epoch, saved.leader_id, saved.voted, deadline)

    def epoch_seen(self, epoch: int, now_ms: int) -> list[Effect]:
        """Another replica is in a higher epoch: ours has ended."""
        if epoch <= self.epoch:
            return []
        return self.enter(Unattached(epoch, None, None, self.election_end(now_ms)))

    def learn(self, leadership: Leadership, now_ms: int) -> list[Effect]:
        """Another replica reported an epoch and perhaps its leader."""
        epoch, leader_id = leadership.epoch, leadership.leader_id
        if epoch < self.epoch:
            return []
        if leader_id is None or leader_id == self.key.id:
            return self.epoch_seen(epoch, now_ms)
        election = self.election(self.state)
        known = election.leader_id if epoch == self.epoch else None
        invariant(known in (None, leader_id), f"two leaders in epoch {epoch}: {known}, {leader_id}")
        state = self.state
        if isinstance(state, Follower) and epoch == state.epoch:
            state.endpoints = state.endpoints or leadership.endpoints
            return []
        if isinstance(state, Prospective) and known is not None:
            return []
        return self.follow(leadership, now_ms)

    def follow(self, leadership: Leadership, now_ms: int) -> list[Effect]:
        epoch, leader_id = leadership.epoch, leadership.leader_id
        invariant(leader_id not in (None, self.key.id), f"no leader to follow: {leadership}")
        voted = self.election(self.state).voted if epoch == self.epoch else None
        deadline = now_ms + self.options.timeouts.fetch_ms
        update_ms = now_ms + self.options.timeouts.fetch_ms
        return self.enter(
            Follower(
                epoch,
                leader_id,  # type: ignore[arg-type]
                voted,
                leadership.endpoints,
                deadline,
                update_ms=update_ms,
            )
        )

    def enter(self, state: State) -> list[Effect]:
        invariant(state.epoch >= self.epoch, f"epoch goes back from {self.epoch} to {state.epoch}")
        if type(state) is not type(self.state) or state.epoch != self.epoch:
            self.outgoing.reset()
        self.state = state
        election = self.election(state)
        if election == self.saved:
            return []
        self.saved = election
        return [SaveElection(election)]

    def election(self, state: State) -> ElectionState:
        match state:
            case Leader(epoch) | Resigned(epoch):
                return ElectionState(epoch, self.key.id, None)
            case Candidate(epoch):
                return ElectionState(epoch, None, self.key)
            case Unattached() | Prospective() | Follower():
                return ElectionState(state.epoch, state.leader_id, state.voted)

    def own_vote(self) -> Tally:
        return Tally().with_vote(self.key.id, granted=True) if self.is_voter else Tally()

    def election_end(self, now_ms: int) -> int:
        # Random, so that two candidates do not split the vote for ever.
        election_ms = self.options.timeouts.election_ms
        return now_ms + election_ms + self.rng.randrange(max(1, election_ms))
