"""Elections: requesting, granting and counting votes. Pure."""

from __future__ import annotations

from dataclasses import replace

from skylog.kernel.errors import ErrorCode, invariant
from skylog.quorum.effects import BeginEpoch, Effect
from skylog.quorum.messages import Leadership, VoteRequest, VoteResponse
from skylog.quorum.replica import Replica
from skylog.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Tally,
    Unattached,
)
from skylog.quorum.voters import ReplicaKey


class Voting:
    """The part of the machine that elects."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    # -- granting votes ------------------------------------------------------------------------

    def requested(self, request: VoteRequest, now_ms: int) -> tuple[VoteResponse, list[Effect]]:
        """Another replica requests a vote or a pre-vote."""
        replica = self._replica
        error = self._refusal(request)
        if error is not ErrorCode.NONE:
            return VoteResponse(error, replica.leadership), []
        effects = replica.epoch_seen(request.epoch, now_ms)
        if request.voter is not None and not _is_meant(request.voter, replica.key):
            return VoteResponse(ErrorCode.INVALID_VOTER_KEY, replica.leadership), effects
        granted = self.grants(request)
        state = replica.state
        if granted and not request.pre_vote and isinstance(state, Unattached | Prospective):
            # Its chance to win is at least as good as ours, so wait for it.
            deadline = replica.election_end(now_ms)
            voted = replace(state, voted=request.candidate, deadline_ms=deadline)
            effects += replica.enter(voted)
        return VoteResponse(ErrorCode.NONE, replica.leadership, granted), effects

    def _refusal(self, request: VoteRequest) -> ErrorCode:
        # Only in a pre-vote may the replica have records of the epoch in its request.
        known = request.last_epoch - request.pre_vote
        if request.end_offset < 0 or request.last_epoch < 0 or known >= request.epoch:
            return ErrorCode.INVALID_REQUEST
        if request.epoch < self._replica.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.candidate.id < 0 or request.candidate == self._replica.key:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def grants(self, request: VoteRequest) -> bool:
        log = self._replica.log
        theirs, ours = (request.last_epoch, request.end_offset), (log.last_epoch, log.end_offset)
        up_to_date = theirs >= ours
        state = self._replica.state
        match state:
            case Unattached() | Prospective() if not request.pre_vote:
                if state.voted is not None:
                    return state.voted == request.candidate
                return state.leader_id is None and up_to_date
            case Follower():
                return request.pre_vote and up_to_date and not state.has_fetched
            case Leader():
                return False
        return request.pre_vote and up_to_date

    # -- requesting votes ----------------------------------------------------------------------

    def timed_out(self, now_ms: int) -> list[Effect]:
        """The current state has timed out."""
        replica = self._replica
        state = replica.state
        match state:
            case Resigned():
                return replica.epoch_seen(state.epoch + 1, now_ms)
            case Prospective():
                return self._lose(state, now_ms)
            case _ if replica.may_stand:
                return self.stand(now_ms)
        return []

    def stand(self, now_ms: int) -> list[Effect]:
        """Ask the others whether this replica would win."""
        replica = self._replica
        before, told = replica.election(replica.state), replica.leadership
        leader_id = None if before.leader_id == replica.key.id else before.leader_id
        tally = replica.own_vote()
        deadline = replica.election_end(now_ms)
        replica.outgoing.reset()
        # Nothing that must be saved has changed: a crash here leaves no trace.
        replica.state = Prospective(
            before.epoch, leader_id, before.voted, told.endpoints, tally, deadline
        )
        return self._count(now_ms)

    def request_votes(self, now_ms: int) -> list[Effect]:
        """Ask every voter that has not answered."""
        replica, sends = self._replica, list[Effect]()
        state = replica.state
        if not isinstance(state, Prospective | Candidate):
            return []
        log = replica.log
        for voter, peer in replica.others():
            if voter.key.id not in state.tally:
                request = VoteRequest(
                    replica.key,
                    state.epoch,
                    log.last_epoch,
                    log.end_offset,
                    isinstance(state, Prospective),
                    voter.key,
                )
                sends += replica.outgoing.send(peer, request, now_ms)
        return sends

    def answered(
        self, voter: ReplicaKey, request: VoteRequest, response: VoteResponse, now_ms: int
    ) -> list[Effect]:
        """A voter has answered; responses to an earlier request do not count."""
        state = self._replica.state
        if request.epoch != state.epoch or voter not in self._replica.voters:
            return []
        if not isinstance(state, Prospective if request.pre_vote else Candidate):
            return []
        granted = response.granted and response.error is ErrorCode.NONE
        tally = state.tally.with_vote(voter.id, granted=granted)
        self._replica.state = replace(state, tally=tally)
        return self._count(now_ms)

    def _count(self, now_ms: int) -> list[Effect]:
        state, voters = self._replica.state, self._replica.voters
        invariant(isinstance(state, Prospective | Candidate), f"votes counted in {state}")
        tally = state.tally  # type: ignore[union-attr]
        if len(tally.granted) >= voters.majority:
            if isinstance(state, Prospective):
                return self._to_candidate(now_ms)
            return self._to_leader(tally, now_ms)
        lost = len(tally.rejected) > len(voters.voters) - voters.majority
        return self._lose(state, now_ms) if lost and isinstance(state, Prospective) else []

    def _to_candidate(self, now_ms: int) -> list[Effect]:
        replica = self._replica
        state = Candidate(replica.epoch + 1, replica.own_vote(), replica.election_end(now_ms))
        return replica.enter(state) + self._count(now_ms)

    def _to_leader(self, tally: Tally, now_ms: int) -> list[Effect]:
        replica = self._replica
        leader = Leader(replica.epoch, replica.log.end_offset, now_ms)
        granting = tuple(key for key in replica.voters.keys if key.id in tally.granted)
        return [*replica.enter(leader), BeginEpoch(leader.epoch, granting)]

    def _lose(self, state: object, now_ms: int) -> list[Effect]:
        """Return to the leader, if there is one, or wait."""
        replica = self._replica
        invariant(isinstance(state, Prospective), f"an election lost in {state}")
        told = replica.leadership
        if told.leader_id is not None and (
            told.endpoints or replica.voters.get(told.leader_id) is not None
        ):
            return replica.follow(Leadership(told.epoch, told.leader_id, told.endpoints), now_ms)
        election = replica.election(replica.state)
        deadline = replica.election_end(now_ms)
        return replica.enter(
            Unattached(election.epoch, election.leader_id, election.voted, deadline)
        )


def _is_meant(voter: ReplicaKey, local: ReplicaKey) -> bool:
    return voter.id == local.id and voter.directory_id in (local.directory_id, bytes(16))
