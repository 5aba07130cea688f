"""Leader election and commits: Kafka's quorum (KIP-595, 630, 853, 996), pure.

===========  ====================================================================================
state        goes to
===========  ====================================================================================
Unattached   Unattached: a higher epoch, a vote given · Prospective: no leader in time ·
             Follower: it learns of a leader
Prospective  Candidate: a majority would vote for it · Follower, Unattached: it would not
Candidate    Leader: a majority has voted for it · Prospective: not in time ·
             Unattached: a higher epoch · Follower: another leads
Leader       Resigned: it shuts down, no majority fetches, it is removed from the voters ·
             Unattached, Follower: a higher epoch
Follower     Prospective: no response from the leader · Unattached, Follower: a higher epoch
Resigned     Unattached: the next epoch, in time · Follower: another leads
===========  ====================================================================================

Every call returns effects, which are carried out in order and before the response is sent: an
election is saved before anything that relies on it. After each event ``tick`` returns what to send,
and ``deadline_ms`` when to call it again. A quorum of one takes the same steps, without waiting for
others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skylog.kernel.errors import ErrorCode
from skylog.quorum.effects import Effect
from skylog.quorum.election import ElectionState
from skylog.quorum.following import Following
from skylog.quorum.leading import Leading
from skylog.quorum.membership import Membership
from skylog.quorum.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Leadership,
    PeerRequest,
    PeerResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from skylog.quorum.outgoing import Sent
from skylog.quorum.replica import LogView, QuorumOptions, Replica
from skylog.quorum.states import Candidate, Follower, Leader, Prospective, Resigned, State
from skylog.quorum.voters import Endpoint, Voter, VoterSet
from skylog.quorum.voting import Voting

if TYPE_CHECKING:
    from skylog.kernel.rng import Random


class QuorumMachine:
    """One replica's part in the quorum."""

    def __init__(self, local: Voter, log: LogView, options: QuorumOptions, rng: Random) -> None:
        self._replica = Replica(local, log, options, rng)
        self._voting = Voting(self._replica)
        self._leading = Leading(self._replica)
        self._following = Following(self._replica)
        self._membership = Membership(self._replica)

    @property
    def leadership(self) -> Leadership:
        """The leader, as far as this replica knows."""
        return self._replica.leadership

    @property
    def state(self) -> State:
        return self._replica.state

    @property
    def epoch(self) -> int:
        return self._replica.epoch

    @property
    def leader_id(self) -> int | None:
        return self._replica.leader_id

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """The endpoint of the leader that this replica follows."""
        leader = self._replica.leader_peer()
        return None if leader is None else leader.endpoint

    @property
    def high_watermark(self) -> int:
        """What this replica knows to be committed."""
        return self._replica.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self._replica.voters

    @property
    def is_voter(self) -> bool:
        return self._replica.is_voter

    # -- events --------------------------------------------------------------------------------

    def start(self, saved: ElectionState | None, now_ms: int) -> list[Effect]:
        """Load the saved state; a single voter leads at once."""
        replica = self._replica
        replica.saved = saved
        snapshot = replica.log.latest_snapshot
        # A snapshot contains only committed records.
        replica.high_watermark = 0 if snapshot is None else snapshot.offset
        replica.synced_offset = replica.log.end_offset
        effects = replica.enter(replica.initial(saved or ElectionState(), now_ms))
        if replica.voters.is_only(replica.key):
            effects += self._voting.stand(now_ms)
        return effects

    def tick(self, now_ms: int) -> list[Effect]:
        """Let time pass, and return what to send."""
        replica = self._replica
        replica.outgoing.expire(now_ms)
        effects: list[Effect] = []
        end = self._state_end_ms()
        if end is not None and now_ms >= end:
            if isinstance(replica.state, Leader):
                effects += self._leading.resign(now_ms)
            else:
                effects += self._voting.timed_out(now_ms)
        return effects + self._sends(now_ms)

    @property
    def deadline_ms(self) -> int | None:
        """When ``tick`` has something to do; None if nothing is due."""
        replica = self._replica
        ends = [self._state_end_ms(), replica.outgoing.deadline_ms]
        if isinstance(replica.state, Leader):
            ends.append(self._leading.announce_ms(replica.state))
        elif isinstance(replica.state, Follower) and replica.log.quorum.kraft_version > 0:
            ends.append(replica.state.update_ms)
        return min((end for end in ends if end is not None), default=None)

    def receive(self, request: PeerRequest, now_ms: int) -> tuple[Any, list[Effect]]:
        """The response to another replica's request; it is sent after the effects are carried
        out."""
        match request:
            case VoteRequest():
                return self._voting.requested(request, now_ms)
            case BeginEpochRequest():
                return self._following.epoch_begun(request, now_ms)
            case EndEpochRequest():
                return self._following.epoch_ended(request, now_ms)
            case FetchRequest():
                return self._leading.fetch_requested(request, now_ms)
            case FetchSnapshotRequest():
                return self._leading.snapshot_requested(request, now_ms)
            case AddVoterRequest() | RemoveVoterRequest() | UpdateVoterRequest():
                return self._membership.requested(request, now_ms)

    def answered(
        self, correlation_id: int, response: PeerResponse | None, now_ms: int
    ) -> list[Effect]:
        """A request of this replica was answered, or (None) failed."""
        outgoing = self._replica.outgoing
        sent = outgoing.answered(correlation_id)
        if sent is None:
            return []
        if response is None:
            outgoing.failed(sent.peer, now_ms)
            return []
        outgoing.succeeded(sent.peer)
        if response.error is not ErrorCode.NONE:
            outgoing.pause(sent.peer, now_ms)
        effects = self._replica.learn(response.leadership, now_ms)
        return effects + self._answered(sent, response, now_ms)

    def log_synced(self, end_offset: int, now_ms: int) -> list[Effect]:
        """This replica's own log is durable up to here."""
        state = self._replica.state
        self._replica.synced_offset = max(self._replica.synced_offset, end_offset)
        if isinstance(state, Leader):
            return self._leading.synced(state, end_offset, now_ms)
        if isinstance(state, Follower):
            return self._following.synced(state)
        return []

    def resign(self, now_ms: int) -> list[Effect]:
        """Stop leading, for a shutdown."""
        return self._leading.resign(now_ms)

    # -- internals -----------------------------------------------------------------------------

    def _answered(self, sent: Sent, response: PeerResponse, now_ms: int) -> list[Effect]:
        request = sent.request
        match response:
            case VoteResponse() if isinstance(request, VoteRequest):
                voter = request.voter
                return self._voting.answered(voter, request, response, now_ms) if voter else []
            case FetchResponse():
                return self._following.fetched(response, now_ms)
            case FetchSnapshotResponse():
                return self._following.snapshot_fetched(response, now_ms)
            case EpochResponse() if isinstance(request, BeginEpochRequest):
                if request.voter is not None:
                    self._leading.announce_answered(request.voter, response, now_ms)
            case EpochResponse():
                state = self._replica.state
                if isinstance(state, Resigned):
                    told = state.told | {sent.peer.id}
                    self._replica.state = replace(state, told=told)
        return []

    def _state_end_ms(self) -> int | None:
        """When the current state times out."""
        state = self._replica.state
        if isinstance(state, Leader):
            return self._leading.check_quorum_ms(state)
        lasts = not self._replica.may_stand and not isinstance(state, Resigned)
        return None if lasts else state.deadline_ms

    def _sends(self, now_ms: int) -> list[Effect]:
        state = self._replica.state
        match state:
            case Leader():
                return self._leading.announce(state, now_ms)
            case Resigned():
                return self._leading.say_goodbye(state, now_ms)
            case Prospective() | Candidate():
                return self._voting.request_votes(now_ms)
            case Follower():
                asked = self._membership.ask(state, now_ms)
                return asked + self._following.fetch(now_ms)
        return self._following.fetch(now_ms)
