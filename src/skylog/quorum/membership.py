"""Changes of the voters (KIP-853): one at a time, each committed before the next. Pure."""

from __future__ import annotations

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID
from skylog.quorum.effects import AppendVoters, Effect
from skylog.quorum.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterResponse,
)
from skylog.quorum.replica import Replica
from skylog.quorum.states import Follower, Leader
from skylog.quorum.voters import ReplicaKey, VoterSet

_HOUR_MS = 3_600_000
Change = AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest


class Membership:
    """The part of the machine that changes the voters."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def requested(self, request: Change, now_ms: int) -> tuple[VoterResponse, list[Effect]]:
        """Begin a change; it is complete when its record is committed."""
        replica = self._replica
        state = replica.state
        if not isinstance(state, Leader):
            return VoterResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, replica.leadership), []
        refused = self._refusal(state, request, now_ms)
        if refused is not None:
            return VoterResponse(refused[0], replica.leadership, refused[1]), []
        voters = self._changed(request)
        if voters == replica.voters:
            return VoterResponse(ErrorCode.NONE, replica.leadership), []
        end_offset = replica.log.end_offset + 1
        response = VoterResponse(ErrorCode.NONE, replica.leadership, end_offset=end_offset)
        return response, [AppendVoters(voters)]

    def _changed(self, request: Change) -> VoterSet:
        voters = self._replica.voters
        match request:
            case AddVoterRequest(voter):
                return voters.added(voter)
            case RemoveVoterRequest(key):
                return voters.removed(key)
            case UpdateVoterRequest(voter):
                return voters.updated(voter)

    def _refusal(self, state: Leader, request: Change, now_ms: int) -> tuple[ErrorCode, str] | None:
        log = self._replica.log
        if isinstance(request, UpdateVoterRequest) and request.epoch != state.epoch:
            stale = request.epoch < state.epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH
            return code, f"The epoch is {state.epoch}."
        if log.quorum.kraft_version == 0:
            return (
                ErrorCode.UNSUPPORTED_VERSION,
                "The voters are those of controller.quorum.voters: kraft.version is 0.",
            )
        if state.high_watermark is None:
            return ErrorCode.REQUEST_TIMED_OUT, "The leader has not committed anything yet."
        if log.voters_offset >= state.high_watermark:
            return ErrorCode.REQUEST_TIMED_OUT, "Another change of voters is not committed yet."
        match request:
            case AddVoterRequest():
                return self._add_refusal(state, request, now_ms)
            case RemoveVoterRequest(key):
                return self._remove_refusal(key)
            case UpdateVoterRequest(voter) if voter.key not in self._replica.voters:
                return ErrorCode.VOTER_NOT_FOUND, f"{voter.key.id} is not a voter."
        return None

    def _add_refusal(
        self, state: Leader, request: AddVoterRequest, now_ms: int
    ) -> tuple[ErrorCode, str] | None:
        key = request.voter.key
        if key.id < 0 or key.directory_id == ZERO_UUID:
            return ErrorCode.INVALID_REQUEST, "A voter has an id and a directory id."
        if self._replica.voters.get(key.id) is not None:
            return ErrorCode.DUPLICATE_VOTER, f"{key.id} is a voter already."
        least, greatest = request.voter.kraft_versions
        if not least <= self._replica.log.quorum.kraft_version <= greatest:
            return ErrorCode.INVALID_REQUEST, f"{key.id} does not support the kraft.version."
        progress = state.progress.get(key)
        if (
            progress is None
            or min(progress.last_caught_up_ms, progress.last_fetch_ms - now_ms + _HOUR_MS) < 0
        ):
            return ErrorCode.REQUEST_TIMED_OUT, f"{key.id} has not caught up with the leader."
        return None

    def _remove_refusal(self, key: ReplicaKey) -> tuple[ErrorCode, str] | None:
        voters = self._replica.voters
        if key not in voters.keys:
            return ErrorCode.VOTER_NOT_FOUND, f"{key.id} with this directory is not a voter."
        if len(voters.voters) == 1:
            return ErrorCode.INVALID_REQUEST, f"{key.id} is the only voter."
        return None

    # -- requesting a change -------------------------------------------------------------------

    def ask(self, state: Follower, now_ms: int) -> list[Effect]:
        """Tell the leader, from time to time, what has changed about this replica."""
        replica = self._replica
        leader = replica.leader_peer()
        if now_ms < state.update_ms or leader is None or replica.log.quorum.kraft_version == 0:
            return []
        request = self._wish(state)
        if request is None:
            state.update_ms = now_ms + replica.options.timeouts.fetch_ms
            return []
        sends = replica.outgoing.send(leader, request, now_ms)
        if sends:
            state.update_ms = now_ms + replica.options.timeouts.fetch_ms
        return list(sends)

    def _wish(self, state: Follower) -> Change | None:
        replica = self._replica
        known = replica.voters.get(replica.key.id)
        if known is not None and known.key == replica.key:
            return (
                None if known == replica.local else UpdateVoterRequest(replica.local, state.epoch)
            )
        # An observer that follows the leader may join; its node's voter with another disk is
        # removed.
        if not replica.options.auto_join or not state.has_fetched:
            return None
        return AddVoterRequest(replica.local) if known is None else RemoveVoterRequest(known.key)
