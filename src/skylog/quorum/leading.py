"""The leader: answers fetches, commits what a majority has, and resigns without a majority.

Pure.
"""

from __future__ import annotations

from typing import Final

from skylog.kernel.errors import ErrorCode
from skylog.kernel.limits import QUORUM_OBSERVERS_MAX
from skylog.quorum.effects import AdvanceHighWatermark, Effect
from skylog.quorum.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from skylog.quorum.replica import LogView, Replica
from skylog.quorum.snapshots import BOOTSTRAP_ID, SnapshotId
from skylog.quorum.states import Leader, Resigned
from skylog.quorum.voters import ReplicaKey

# A leader resigns if no majority has fetched from it for this many fetch timeouts.
_CHECK_QUORUM: Final = 1.5
OBSERVER_AGE_MS_MAX: Final = 300_000


class Leading:
    """The part of the machine that leads."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    # -- answering fetches ---------------------------------------------------------------------

    def refusal(self, epoch: int) -> ErrorCode:
        """Why this replica cannot answer a request that only the leader of ``epoch`` may answer."""
        if epoch < self._replica.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self._replica.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(self._replica.state, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def fetch_requested(
        self, request: FetchRequest, now_ms: int
    ) -> tuple[FetchResponse, list[Effect]]:
        """A replica acknowledges its log and fetches more."""
        replica = self._replica
        error = self.refusal(request.epoch)
        if request.offset < 0 or not 0 <= request.last_epoch <= request.epoch:
            error = ErrorCode.INVALID_REQUEST
        state = replica.state
        if error is not ErrorCode.NONE or not isinstance(state, Leader):
            return FetchResponse(error, replica.leadership), []
        parted = find_divergence(replica.log, request.offset, request.last_epoch)
        effects: list[Effect] = []
        if parted is None:
            self._note_fetch(state, request, now_ms)
            effects = self.advance(state, now_ms)
        # Handling the fetch may have ended this leader's term: then it cannot answer as leader.
        if replica.state is not state:
            return FetchResponse(self.refusal(request.epoch), replica.leadership), effects
        high_watermark = -1 if state.high_watermark is None else state.high_watermark
        has_more = parted is None and request.offset < replica.log.end_offset
        response = FetchResponse(
            ErrorCode.NONE,
            replica.leadership,
            high_watermark,
            replica.log.start_offset,
            diverging=parted if isinstance(parted, EpochEnd) else None,
            snapshot_id=parted if isinstance(parted, SnapshotId) else None,
            read_from=request.offset if has_more else None,
        )
        return response, effects

    def _note_fetch(self, state: Leader, request: FetchRequest, now_ms: int) -> None:
        replica = self._replica
        end_offset = replica.log.end_offset
        key = replica.voters.key_of(request.replica) or request.replica
        if request.replica.id < 0 or key.id == replica.key.id:
            return
        if key not in state.progress and len(state.progress) >= QUORUM_OBSERVERS_MAX:
            self._forget_observers(state, now_ms)
        progress = state.of(key)
        if request.offset >= end_offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, now_ms)
        elif request.offset >= progress.leader_end_offset >= 0:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.end_offset = max(progress.end_offset, request.offset)
        progress.leader_end_offset = end_offset
        progress.heard_ms = progress.last_fetch_ms = now_ms

    def _forget_observers(self, state: Leader, now_ms: int) -> None:
        """Drop the oldest; their number is bounded."""
        voters = self._replica.voters
        oldest = sorted(state.progress.values(), key=lambda each: each.last_fetch_ms)
        for progress in oldest:
            late = now_ms - progress.last_fetch_ms > OBSERVER_AGE_MS_MAX
            if progress.key in voters or not (late or len(state.progress) >= QUORUM_OBSERVERS_MAX):
                continue
            del state.progress[progress.key]

    def snapshot_requested(
        self, request: FetchSnapshotRequest, now_ms: int
    ) -> tuple[FetchSnapshotResponse, list[Effect]]:
        """A replica requests a chunk of a snapshot."""
        replica = self._replica
        state = replica.state
        error = self.refusal(request.epoch)
        size = None
        # The snapshot of formatting is also in the log, and never sent to another replica.
        if request.snapshot_id != BOOTSTRAP_ID:
            size = replica.log.snapshot_size(request.snapshot_id)
        if error is ErrorCode.NONE and size is None:
            error = ErrorCode.SNAPSHOT_NOT_FOUND
        elif error is ErrorCode.NONE and not 0 <= request.position < (size or 0):
            error = ErrorCode.POSITION_OUT_OF_RANGE
        if error is not ErrorCode.NONE or not isinstance(state, Leader):
            return FetchSnapshotResponse(error, replica.leadership), []
        key = replica.voters.key_of(request.replica)
        if key is not None and key.id != replica.key.id:
            state.of(key).heard_ms = now_ms
        return FetchSnapshotResponse(
            error, replica.leadership, request.snapshot_id, size or 0, request.position
        ), []

    # -- committing ----------------------------------------------------------------------------

    def synced(self, state: Leader, end_offset: int, now_ms: int) -> list[Effect]:
        """The leader's own log is durable up to here."""
        replica = self._replica
        progress = state.of(replica.voters.key_of(replica.key) or replica.key)
        progress.end_offset = max(progress.end_offset, end_offset)
        return self.advance(state, now_ms)

    def advance(self, state: Leader, now_ms: int) -> list[Effect]:
        """Commit what a majority of the voters has."""
        replica = self._replica
        voters = replica.voters
        ends = sorted((self._end_of(state, key) for key in voters.keys), reverse=True)
        offset = ends[voters.majority - 1] if ends else -1
        # Records of earlier epochs are committed only together with one of this epoch.
        if offset <= state.epoch_start_offset or offset <= (state.high_watermark or 0):
            return []
        state.high_watermark = offset
        effects: list[Effect] = []
        if offset > replica.high_watermark:
            replica.high_watermark = offset
            effects.append(AdvanceHighWatermark(offset))
        if not replica.is_voter and offset > replica.log.voters_offset:
            # It was removed from the voters, which it helped to commit.
            effects += self.resign(now_ms)
        return effects

    def _end_of(self, state: Leader, key: ReplicaKey) -> int:
        progress = state.progress.get(key)
        return -1 if progress is None else progress.end_offset

    # -- keeping and resigning leadership ------------------------------------------------------

    def check_quorum_ms(self, state: Leader) -> int | None:
        """When this leader resigns unless replicas fetch; None if it needs no others."""
        voters = self._replica.voters
        needed = voters.majority - self._replica.is_voter
        if needed == 0:
            return None
        local = voters.key_of(self._replica.key)
        heard = sorted(
            (
                max(progress.heard_ms, state.since_ms) if progress else state.since_ms
                for key in voters.keys
                if key != local
                for progress in (state.progress.get(key),)
            ),
            reverse=True,
        )
        return heard[needed - 1] + int(self._replica.options.timeouts.fetch_ms * _CHECK_QUORUM)

    def announce(self, state: Leader, now_ms: int) -> list[Effect]:
        """Announce the leader to voters that do not fetch."""
        replica, sends = self._replica, list[Effect]()
        for voter, peer in replica.others():
            if now_ms >= self._announce_ms(state, voter.key):
                request = BeginEpochRequest(
                    replica.key.id, state.epoch, replica.local.endpoints, voter.key
                )
                sends += replica.outgoing.send(peer, request, now_ms)
        return sends

    def _announce_ms(self, state: Leader, key: ReplicaKey) -> int:
        progress = state.progress.get(key)
        known_ms = -1 if progress is None else max(progress.heard_ms, progress.told_ms)
        if known_ms < 0:
            return state.since_ms
        return known_ms + self._replica.options.timeouts.fetch_ms // 2

    def announce_answered(self, voter: ReplicaKey, response: EpochResponse, now_ms: int) -> None:
        state = self._replica.state
        if isinstance(state, Leader) and response.error is ErrorCode.NONE:
            state.of(voter).told_ms = now_ms

    def announce_ms(self, state: Leader) -> int | None:
        """When the next announcement is due."""
        ends = [
            self._announce_ms(state, voter.key)
            for voter, peer in self._replica.others()
            if self._replica.outgoing.is_idle(peer)
        ]
        return min(ends, default=None)

    def resign(self, now_ms: int) -> list[Effect]:
        """Resign, and notify possible successors."""
        replica = self._replica
        state = replica.state
        if not isinstance(state, Leader):
            return []
        local = replica.voters.key_of(replica.key)
        keys = [key for key in replica.voters.keys if key != local]
        successors = sorted(keys, key=lambda key: self._end_of(state, key), reverse=True)
        deadline = replica.election_end(now_ms)
        return replica.enter(Resigned(state.epoch, deadline, tuple(successors)))

    def say_goodbye(self, state: Resigned, now_ms: int) -> list[Effect]:
        replica, sends = self._replica, list[Effect]()
        for _, peer in replica.others():
            if state.successors and peer.id not in state.told:
                request = EndEpochRequest(
                    replica.key.id, state.epoch, state.successors, replica.local.endpoints
                )
                sends += replica.outgoing.send(peer, request, now_ms)
        return sends


def find_divergence(log: LogView, offset: int, epoch: int) -> EpochEnd | SnapshotId | None:
    """What a replica must do before it can continue: nothing, truncate its log, or fetch a
    snapshot."""
    latest, earliest = log.latest_snapshot, log.earliest_snapshot
    if offset == 0 and latest is not None and latest != BOOTSTRAP_ID:
        # It has nothing: the snapshot is shorter than the log that led to it.
        return latest
    if offset == 0 and log.start_offset == 0:
        return None
    if earliest is not None and latest is not None:
        at_start = offset == log.start_offset and epoch != earliest.epoch
        if offset < log.start_offset or at_start or epoch < earliest.epoch:
            return latest
    end = log.end_of_epoch(epoch)
    return end if end.epoch != epoch or end.end_offset < offset else None
