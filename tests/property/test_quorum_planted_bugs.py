"""The simulation of the quorum finds each of these planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sim.quorum.world import World
from skylog.quorum import leading
from skylog.quorum.effects import AdvanceHighWatermark, TruncateTo
from skylog.quorum.following import Following
from skylog.quorum.leading import Leading
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.membership import Membership
from skylog.quorum.messages import EpochEnd, RemoveVoterRequest
from skylog.quorum.outgoing import Outgoing
from skylog.quorum.replica import Replica
from skylog.quorum.states import Leader, Unattached
from skylog.quorum.voters import VoterSet
from skylog.quorum.voting import Voting

SEEDS_MAX = 400
Patch = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Patch] = {}


def bug(plant: Patch) -> Patch:
    BUGS[plant.__name__.replace("_", " ")] = plant
    return plant


@bug
def votes_twice_in_an_epoch(patch: pytest.MonkeyPatch) -> None:
    real = Voting.grants

    def grants(self: Voting, request: Any) -> bool:
        state = self._replica.state
        if isinstance(state, Unattached) and not request.pre_vote:
            return True
        return real(self, request)

    patch.setattr(Voting, "grants", grants)


@bug
def votes_for_a_shorter_log(patch: pytest.MonkeyPatch) -> None:
    def grants(self: Voting, request: Any) -> bool:
        state = self._replica.state
        return isinstance(state, Unattached) and state.voted in (None, request.candidate)

    patch.setattr(Voting, "grants", grants)


@bug
def forgets_its_vote(patch: pytest.MonkeyPatch) -> None:
    real = Voting.requested

    def requested(self: Voting, request: Any, now_ms: int) -> Any:
        response, _ = real(self, request, now_ms)
        return response, []

    patch.setattr(Voting, "requested", requested)


@bug
def commits_what_a_minority_has(patch: pytest.MonkeyPatch) -> None:
    real = Leading.advance

    def advance(self: Leading, state: Leader, now_ms: int) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(VoterSet, "majority", property(lambda v: max(1, len(v.voters) // 2)))
            return real(self, state, now_ms)

    patch.setattr(Leading, "advance", advance)


@bug
def commits_records_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    real = Leading.advance

    def advance(self: Leading, state: Leader, now_ms: int) -> Any:
        state.epoch_start_offset = -1
        return real(self, state, now_ms)

    patch.setattr(Leading, "advance", advance)


@bug
def never_truncates_a_diverging_log(patch: pytest.MonkeyPatch) -> None:
    real = leading.find_divergence

    def find(log: Any, offset: int, epoch: int) -> Any:
        found = real(log, offset, epoch)
        return None if isinstance(found, EpochEnd) else found

    patch.setattr(leading, "find_divergence", find)


@bug
def truncates_to_its_own_high_watermark(patch: pytest.MonkeyPatch) -> None:
    real = Replica.follow

    def follow(self: Replica, leadership: Any, now_ms: int) -> Any:
        self.synced_offset = min(self.synced_offset, self.high_watermark)
        cut = [TruncateTo(max(self.high_watermark, self.log.start_offset))]
        return [*real(self, leadership, now_ms), *cut]

    patch.setattr(Replica, "follow", follow)


@bug
def acknowledges_what_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    real = Following.fetch

    def fetch(self: Following, now_ms: int) -> Any:
        self._replica.synced_offset = self._replica.log.end_offset
        return real(self, now_ms)

    patch.setattr(Following, "fetch", fetch)


@bug
def counts_itself_before_it_has_synced(patch: pytest.MonkeyPatch) -> None:
    real = Leading.advance

    def advance(self: Leading, state: Leader, now_ms: int) -> Any:
        replica = self._replica
        own = state.of(replica.voters.key_of(replica.key) or replica.key)
        own.end_offset = replica.log.end_offset
        return real(self, state, now_ms)

    patch.setattr(Leading, "advance", advance)


@bug
def keeps_leading_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    real = Replica.initial

    def initial(self: Replica, saved: Any, now_ms: int) -> Any:
        if saved.leader_id == self.key.id and saved.epoch >= self.log.last_epoch:
            return Leader(saved.epoch, self.log.end_offset, now_ms)
        return real(self, saved, now_ms)

    patch.setattr(Replica, "initial", initial)


@bug
def believes_the_leaders_high_watermark(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Following, state: Any) -> Any:
        replica = self._replica
        if state.leader_high_watermark <= replica.high_watermark:
            return []
        replica.high_watermark = state.leader_high_watermark
        return [AdvanceHighWatermark(replica.high_watermark)]

    patch.setattr(Following, "_advance", advance)


@bug
def changes_voters_before_the_last_change_is_committed(patch: pytest.MonkeyPatch) -> None:
    real = Membership._refusal

    def refusal(self: Membership, state: Leader, request: Any, now_ms: int) -> Any:
        found = real(self, state, request, now_ms)
        if found is None or "Another change" not in found[1]:
            return found
        if isinstance(request, RemoveVoterRequest):
            return self._remove_refusal(request.key)
        return self._add_refusal(state, request, now_ms)

    patch.setattr(Membership, "_refusal", refusal)


@bug
def fetches_below_the_log_without_a_snapshot(patch: pytest.MonkeyPatch) -> None:
    def find(log: Any, offset: int, epoch: int) -> Any:
        end = log.end_of_epoch(epoch)
        return end if end.epoch != epoch or end.end_offset < offset else None

    patch.setattr(leading, "find_divergence", find)


@bug
def takes_one_response_for_another(patch: pytest.MonkeyPatch) -> None:
    def answered(self: Outgoing, correlation_id: int) -> Any:
        sent = self._sent.get(correlation_id) or next(iter(self._sent.values()), None)
        self._sent.clear()
        self._busy.clear()
        return sent

    patch.setattr(Outgoing, "answered", answered)


@bug
def never_resigns(patch: pytest.MonkeyPatch) -> None:
    real = QuorumMachine.receive

    def receive(self: QuorumMachine, request: Any, now_ms: int) -> Any:
        before = self.state
        response, effects = real(self, request, now_ms)
        if isinstance(before, Leader) and not isinstance(self.state, Leader):
            self._replica.state = before
            return response, []
        return response, effects

    patch.setattr(QuorumMachine, "receive", receive)


def caught_at(name: str, seeds: int) -> int | None:
    """The first seed that shows the bug."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYLOG_INVARIANT_RAISES", "1")
        BUGS[name](patch)
        for seed in range(seeds):
            try:
                World(seed).play()
            except AssertionError:
                return seed
    return None


@pytest.mark.parametrize("name", list(BUGS))
def test_a_planted_bug_is_caught(name: str) -> None:
    assert caught_at(name, SEEDS_MAX) is not None
