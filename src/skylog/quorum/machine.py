"""Who leads: Kafka's quorum state machine (KIP-595, 853, 996), pure.

===========  ====================================================================================
state        goes to
===========  ====================================================================================
Unattached   Unattached: a higher epoch, a vote given · Prospective: no leader in time ·
             Follower: a leader is heard of
Prospective  Candidate: a majority would vote for it · Follower, Unattached: it would not
Candidate    Leader: a majority has voted for it · Prospective: not in time ·
             Unattached: a higher epoch · Follower: another leads
Leader       Resigned: it shuts down · Unattached, Follower: a higher epoch
Follower     Prospective: no word from the leader · Unattached, Follower: a higher epoch
Resigned     Unattached: the next epoch, in time · Follower: another leads
===========  ====================================================================================

Every call returns effects, to be carried out in order: an election is saved before anything that
relies on it. A quorum of one takes the same road, with nobody to wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from skylog.kernel.errors import invariant
from skylog.quorum.election import ElectionState
from skylog.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Progress,
    Prospective,
    Resigned,
    State,
    Tally,
    Unattached,
)
from skylog.quorum.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from skylog.kernel.rng import Random


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Make this durable before going on."""

    election: ElectionState


@dataclass(frozen=True, slots=True)
class RequestVotes:
    """Ask every other voter; a pre-vote only asks whether it would."""

    epoch: int
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """This node leads: write the records that begin its epoch."""

    epoch: int
    granting: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything before this offset can no longer be lost."""

    offset: int


Effect = SaveElection | RequestVotes | BeginEpoch | AdvanceHighWatermark


class LogView(Protocol):
    """What an election must know of the log."""

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Kafka's ``controller.quorum.election.timeout.ms`` and ``…fetch.timeout.ms``."""

    election_ms: int = 1000
    fetch_ms: int = 2000


class QuorumMachine:
    """One replica's view of the quorum."""

    def __init__(
        self, local: ReplicaKey, voters: VoterSet, log: LogView, timeouts: Timeouts, rng: Random
    ) -> None:
        self._local = local
        self._voters = voters
        self._log = log
        self._timeouts = timeouts
        self._rng = rng
        self._saved: ElectionState | None = None
        self._state: State = Unattached(0, None, None, 0)

    @property
    def state(self) -> State:
        return self._state

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def leader_id(self) -> int | None:
        return self._election(self._state).leader_id

    def start(self, saved: ElectionState | None, now_ms: int) -> list[Effect]:
        """Take up what was saved; a lone voter has nobody to wait for and leads at once."""
        self._saved = saved
        effects = self._enter(self._initial(saved or ElectionState(), now_ms))
        if self._voters.is_only(self._local):
            effects += self._to_prospective(now_ms)
        return effects

    def tick(self, now_ms: int) -> list[Effect]:
        """Let time pass; ``deadline_ms`` says when it matters."""
        deadline = self.deadline_ms
        if deadline is None or now_ms < deadline:
            return []
        match self._state:
            case Resigned(epoch):
                return self._enter(Unattached(epoch + 1, None, None, self._election_end(now_ms)))
            case Prospective():
                return self._lose(now_ms)
            case _ if self._local in self._voters:
                return self._to_prospective(now_ms)
        return []

    @property
    def deadline_ms(self) -> int | None:
        return None if isinstance(self._state, Leader) else self._state.deadline_ms

    # -- elections -----------------------------------------------------------------------------

    def vote_requested(
        self, candidate: ReplicaKey, epoch: int, log_end: tuple[int, int], now_ms: int, *, pre: bool
    ) -> tuple[bool, list[Effect]]:
        """Another asks for a vote; ``log_end`` is its last epoch and its end offset."""
        if epoch < self.epoch or candidate == self._local:
            return False, []
        effects = self.epoch_seen(epoch, now_ms)
        up_to_date = log_end >= (self._log.last_epoch, self._log.end_offset)
        granted = self._grants(candidate, up_to_date=up_to_date, pre=pre)
        state = self._state
        if granted and not pre and isinstance(state, Unattached | Prospective):
            # It has at least our chance to win, so it gets its time.
            deadline = self._election_end(now_ms)
            effects += self._enter(replace(state, voted=candidate, deadline_ms=deadline))
        return granted, effects

    def vote_answered(
        self, voter: ReplicaKey, epoch: int, now_ms: int, *, granted: bool, pre: bool
    ) -> list[Effect]:
        """A voter has answered; answers to an earlier question count for nothing."""
        state = self._state
        if epoch != self.epoch or voter not in self._voters:
            return []
        if not isinstance(state, Prospective if pre else Candidate):
            return []
        self._state = replace(state, tally=state.tally.with_vote(voter.id, granted=granted))
        return self._count(now_ms)

    def epoch_seen(self, epoch: int, now_ms: int) -> list[Effect]:
        """Someone is in a higher epoch: ours is over."""
        if epoch <= self.epoch:
            return []
        return self._enter(Unattached(epoch, None, None, self._election_end(now_ms)))

    def leader_seen(self, leader_id: int, epoch: int, now_ms: int) -> list[Effect]:
        """A leader has made itself known."""
        if epoch < self.epoch or leader_id == self._local.id:
            return []
        known = self.leader_id if epoch == self.epoch else None
        invariant(known in (None, leader_id), f"two leaders in epoch {epoch}: {known}, {leader_id}")
        if isinstance(self._state, Follower) and epoch == self.epoch:
            return []
        voted = self._election(self._state).voted if epoch == self.epoch else None
        return self._enter(Follower(epoch, leader_id, voted, now_ms + self._timeouts.fetch_ms))

    def resign(self, now_ms: int) -> list[Effect]:
        """Stop leading, for a shutdown."""
        if not isinstance(self._state, Leader):
            return []
        return self._enter(Resigned(self.epoch, self._election_end(now_ms)))

    # -- replication ---------------------------------------------------------------------------

    def log_synced(self, end_offset: int) -> list[Effect]:
        """The leader's own log is durable up to here."""
        state = self._state
        if not isinstance(state, Leader):
            return []
        state.progress[self._local.id].end_offset = end_offset
        return self._advance(state)

    def progress(self) -> Mapping[int, Progress]:
        """How far each voter is, as the leader knows it."""
        return self._state.progress if isinstance(self._state, Leader) else {}

    def _advance(self, state: Leader) -> list[Effect]:
        offsets = sorted((each.end_offset for each in state.progress.values()), reverse=True)
        offset = offsets[self._voters.majority - 1]
        # Records of earlier epochs are committed only together with one of this epoch.
        if offset <= state.epoch_start_offset or offset <= (state.high_watermark or 0):
            return []
        state.high_watermark = offset
        return [AdvanceHighWatermark(offset)]

    # -- transitions ---------------------------------------------------------------------------

    def _initial(self, saved: ElectionState, now_ms: int) -> State:
        deadline = self._election_end(now_ms)
        if saved.epoch < self._log.last_epoch:
            return Unattached(self._log.last_epoch, None, None, deadline)
        if saved.leader_id == self._local.id:
            # What it wrote last may be lost: it must not write on under the same epoch.
            return Resigned(saved.epoch, deadline)
        if saved.voted == self._local:
            return Candidate(saved.epoch, Tally().with_vote(self._local.id, granted=True), deadline)
        if saved.leader_id is not None and self._voters.get(saved.leader_id) is not None:
            fetch_end = now_ms + self._timeouts.fetch_ms
            return Follower(saved.epoch, saved.leader_id, saved.voted, fetch_end)
        return Unattached(saved.epoch, saved.leader_id, saved.voted, deadline)

    def _to_prospective(self, now_ms: int) -> list[Effect]:
        before = self._election(self._state)
        leader_id = None if before.leader_id == self._local.id else before.leader_id
        tally = Tally().with_vote(self._local.id, granted=True)
        deadline = self._election_end(now_ms)
        # Nothing to remember has changed: a crash here is as if it had not happened.
        self._state = Prospective(before.epoch, leader_id, before.voted, tally, deadline)
        return self._count(now_ms)

    def _count(self, now_ms: int) -> list[Effect]:
        state = self._state
        invariant(isinstance(state, Prospective | Candidate), f"votes counted in {state}")
        tally = state.tally  # type: ignore[union-attr]
        if len(tally.granted) >= self._voters.majority:
            if isinstance(state, Prospective):
                return self._to_candidate(now_ms)
            return self._to_leader(tally)
        if len(tally.rejected) > len(self._voters.voters) - self._voters.majority:
            return self._lose(now_ms)
        if len(tally.granted) + len(tally.rejected) > 1:
            return []
        return [RequestVotes(state.epoch, pre_vote=isinstance(state, Prospective))]

    def _to_candidate(self, now_ms: int) -> list[Effect]:
        tally = Tally().with_vote(self._local.id, granted=True)
        state = Candidate(self.epoch + 1, tally, self._election_end(now_ms))
        return self._enter(state) + self._count(now_ms)

    def _to_leader(self, tally: Tally) -> list[Effect]:
        progress = {key.id: Progress(key) for key in self._voters.keys}
        leader = Leader(self.epoch, self._log.end_offset, progress)
        granting = tuple(key for key in self._voters.keys if key.id in tally.granted)
        return [*self._enter(leader), BeginEpoch(leader.epoch, granting)]

    def _lose(self, now_ms: int) -> list[Effect]:
        state = self._state
        if isinstance(state, Candidate):
            # The next try begins with asking again, when this epoch's time is over.
            return []
        invariant(isinstance(state, Prospective), f"an election lost in {state}")
        leader_id = self.leader_id
        voted = self._election(state).voted
        if leader_id is not None and self._voters.get(leader_id) is not None:
            deadline = now_ms + self._timeouts.fetch_ms
            return self._enter(Follower(state.epoch, leader_id, voted, deadline))
        return self._enter(Unattached(state.epoch, None, voted, self._election_end(now_ms)))

    def _grants(self, candidate: ReplicaKey, *, up_to_date: bool, pre: bool) -> bool:
        match self._state:
            case Unattached() | Prospective() if not pre:
                election = self._election(self._state)
                if election.voted is not None:
                    return election.voted == candidate
                return election.leader_id is None and up_to_date
            case Leader() | Follower():
                return False
        return pre and up_to_date

    def _enter(self, state: State) -> list[Effect]:
        invariant(state.epoch >= self.epoch, f"epoch {self.epoch} back to {state.epoch}")
        self._state = state
        election = self._election(state)
        if election == self._saved:
            return []
        self._saved = election
        return [SaveElection(election)]

    def _election(self, state: State) -> ElectionState:
        match state:
            case Leader(epoch) | Resigned(epoch):
                return ElectionState(epoch, self._local.id, None)
            case Candidate(epoch):
                return ElectionState(epoch, None, self._local)
            case Unattached() | Prospective() | Follower():
                return ElectionState(state.epoch, state.leader_id, state.voted)

    def _election_end(self, now_ms: int) -> int:
        # Spread, so that two candidates do not split the vote for ever.
        election_ms = self._timeouts.election_ms
        return now_ms + election_ms + self._rng.randrange(max(1, election_ms))
