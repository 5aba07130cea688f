"""Replicas other than the leader: find it, fetch its log, truncate what diverges. Pure."""

from __future__ import annotations

from typing import Final

from skylog.kernel.errors import ErrorCode, invariant
from skylog.quorum.effects import (
    AdvanceHighWatermark,
    AppendFetched,
    Effect,
    InstallSnapshot,
    TruncateTo,
    WriteSnapshot,
)
from skylog.quorum.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Leadership,
)
from skylog.quorum.replica import LogView, Replica
from skylog.quorum.states import Follower, SnapshotFetch
from skylog.quorum.voters import ReplicaKey

# The preferred successor becomes a candidate without delay after its leader has resigned.
_SUCCESSOR_PAUSE: Final = 2


class Following:
    """The part of the machine that follows."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    # -- learning of leaders -------------------------------------------------------------------

    def epoch_begun(
        self, request: BeginEpochRequest, now_ms: int
    ) -> tuple[EpochResponse, list[Effect]]:
        """A leader announces itself."""
        replica = self._replica
        error = self._refusal(request.leader_id, request.epoch)
        if error is not ErrorCode.NONE:
            return EpochResponse(error, replica.leadership), []
        told = Leadership(request.epoch, request.leader_id, request.endpoints)
        effects = replica.learn(told, now_ms)
        if request.voter is not None and request.voter.id != replica.key.id:
            error = ErrorCode.INVALID_VOTER_KEY
        return EpochResponse(error, replica.leadership), effects

    def epoch_ended(
        self, request: EndEpochRequest, now_ms: int
    ) -> tuple[EpochResponse, list[Effect]]:
        """The leader resigns: the replica with the most complete log becomes a candidate first."""
        replica = self._replica
        error = self._refusal(request.leader_id, request.epoch)
        if error is not ErrorCode.NONE:
            return EpochResponse(error, replica.leadership), []
        told = Leadership(request.epoch, request.leader_id, request.endpoints)
        effects = replica.learn(told, now_ms)
        state = replica.state
        if isinstance(state, Follower) and state.leader_id == request.leader_id:
            state.deadline_ms = now_ms + self._pause_ms(request.successors)
        return EpochResponse(ErrorCode.NONE, replica.leadership), effects

    def _refusal(self, leader_id: int, epoch: int) -> ErrorCode:
        if epoch < self._replica.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if leader_id < 0 or leader_id == self._replica.key.id:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def _pause_ms(self, successors: tuple[ReplicaKey, ...]) -> int:
        local, place = self._replica.key, len(successors)
        if local in successors:
            place = successors.index(local)
        step = self._replica.options.timeouts.election_ms // _SUCCESSOR_PAUSE
        return int(step * place)

    # -- fetching ------------------------------------------------------------------------------

    def fetch(self, now_ms: int) -> list[Effect]:
        """Fetch the next records, from the leader if it can be reached, else find it through
        others."""
        replica = self._replica
        outgoing = replica.outgoing
        if outgoing.is_fetching or replica.synced_offset < replica.log.end_offset:
            return []
        leader = replica.leader_peer()
        if leader is not None and outgoing.is_free(leader, now_ms, fetch=True):
            return list(outgoing.send(leader, self._next_request(), now_ms))
        if leader is not None and leader.id not in outgoing.unreachable:
            return []
        peer = replica.any_peer(now_ms)
        return [] if peer is None else list(outgoing.send(peer, self._fetch_request(), now_ms))

    def _next_request(self) -> FetchRequest | FetchSnapshotRequest:
        replica, state = self._replica, self._replica.state
        if isinstance(state, Follower) and state.snapshot is not None:
            wanted = state.snapshot
            return FetchSnapshotRequest(replica.key, state.epoch, wanted.id, wanted.position)
        return self._fetch_request()

    def _fetch_request(self) -> FetchRequest:
        replica = self._replica
        log = replica.log
        return FetchRequest(
            replica.key, replica.epoch, log.end_offset, log.last_epoch, replica.high_watermark
        )

    def fetched(self, response: FetchResponse, now_ms: int) -> list[Effect]:
        """The leader has answered; other replicas answer with an error."""
        replica = self._replica
        state = replica.state
        if not isinstance(state, Follower) or response.error is not ErrorCode.NONE:
            return []
        if (response.leadership.epoch, response.leadership.leader_id) != (
            state.epoch,
            state.leader_id,
        ):
            return []
        self._heard(state, now_ms)
        state.has_fetched = True
        if response.diverging is not None:
            return self._truncate(response.diverging)
        if response.snapshot_id is not None:
            if replica.log.snapshot_size(response.snapshot_id) is None:
                state.snapshot = SnapshotFetch(response.snapshot_id)
            return []
        state.leader_high_watermark = max(state.leader_high_watermark, response.high_watermark)
        if len(response.records):
            return [AppendFetched(response.records)]
        return self._advance(state)

    def synced(self, state: Follower) -> list[Effect]:
        """The fetched records are durable."""
        return self._advance(state)

    def _advance(self, state: Follower) -> list[Effect]:
        replica = self._replica
        offset = min(state.leader_high_watermark, replica.log.end_offset)
        if offset <= replica.high_watermark:
            return []
        replica.high_watermark = offset
        return [AdvanceHighWatermark(offset)]

    def _truncate(self, diverging: EpochEnd) -> list[Effect]:
        replica = self._replica
        offset = truncation_offset(replica.log, diverging)
        invariant(
            offset >= replica.high_watermark,
            f"the leader's log diverges at {offset}, but this one is committed up to "
            f"{replica.high_watermark}",
        )
        if offset >= replica.log.end_offset:
            return []
        replica.synced_offset = min(replica.synced_offset, offset)
        return [TruncateTo(offset)]

    def snapshot_fetched(self, response: FetchSnapshotResponse, now_ms: int) -> list[Effect]:
        """A chunk has arrived, or the leader no longer has the snapshot."""
        replica = self._replica
        state = replica.state
        if not isinstance(state, Follower) or state.snapshot is None:
            return []
        wanted = state.snapshot
        if response.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
            state.snapshot = None
            self._heard(state, now_ms)
            return []
        if response.error is not ErrorCode.NONE or (response.snapshot_id, response.position) != (
            wanted.id,
            wanted.position,
        ):
            return []
        self._heard(state, now_ms)
        effects: list[Effect] = [WriteSnapshot(wanted.id, wanted.position, response.data)]
        wanted.position += len(response.data)
        if wanted.position < response.size:
            return effects
        state.snapshot = None
        invariant(
            wanted.id.offset >= replica.high_watermark,
            f"a snapshot at {wanted.id.offset} before the high watermark",
        )
        replica.synced_offset = wanted.id.offset
        effects.append(InstallSnapshot(wanted.id))
        if wanted.id.offset > replica.high_watermark:
            replica.high_watermark = wanted.id.offset
            effects.append(AdvanceHighWatermark(wanted.id.offset))
        return effects

    def _heard(self, state: Follower, now_ms: int) -> None:
        state.deadline_ms = now_ms + self._replica.options.timeouts.fetch_ms


def truncation_offset(log: LogView, diverging: EpochEnd) -> int:
    """How much of this log the leader may also have, given where its ``diverging`` epoch ends."""
    own = log.end_of_epoch(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(own.end_offset, diverging.end_offset)
    return own.end_offset
