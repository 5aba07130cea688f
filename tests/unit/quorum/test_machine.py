"""The quorum's state machine, transition by transition."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from skylog.kernel.ids import Uuid
from skylog.quorum.election import ElectionState
from skylog.quorum.machine import (
    AdvanceHighWatermark,
    BeginEpoch,
    QuorumMachine,
    RequestVotes,
    SaveElection,
    Timeouts,
)
from skylog.quorum.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from skylog.quorum.voters import ReplicaKey, Voter, VoterSet

KEYS = [ReplicaKey(number, Uuid(bytes([number]) * 16)) for number in range(1, 6)]
LOCAL = KEYS[0]
LATER = 1_000_000


@dataclass
class LogEnd:
    end_offset: int = 10
    last_epoch: int = 3


def machine(voters: int = 3, log: LogEnd | None = None, local: ReplicaKey = LOCAL) -> QuorumMachine:
    members = VoterSet(tuple(Voter(key, ()) for key in KEYS[:voters]))
    return QuorumMachine(local, members, log or LogEnd(), Timeouts(), random.Random(1))


def candidate() -> QuorumMachine:
    """Of three, in epoch 4, with its own vote."""
    found = machine()
    found.start(ElectionState(3), 0)
    found.tick(LATER)
    found.vote_answered(KEYS[1], 3, LATER, granted=True, pre=True)
    assert isinstance(found.state, Candidate)
    return found


def leader() -> QuorumMachine:
    found = candidate()
    found.vote_answered(KEYS[2], 4, LATER, granted=True, pre=False)
    assert isinstance(found.state, Leader)
    return found


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (None, Unattached),
        (ElectionState(3), Unattached),
        (ElectionState(3, LOCAL.id), Resigned),
        (ElectionState(3, None, LOCAL), Candidate),
        (ElectionState(3, 2), Follower),
        (ElectionState(3, 9), Unattached),
        (ElectionState(3, None, KEYS[1]), Unattached),
        (ElectionState(2, 2), Unattached),
    ],
)
def test_it_takes_up_what_was_saved(saved: ElectionState | None, expected: type) -> None:
    found = machine()
    found.start(saved, 0)
    assert type(found.state) is expected
    assert found.epoch == 3, "never below the log's"


def test_a_lone_voter_leads_the_next_epoch_with_each_step_saved() -> None:
    found = machine(voters=1)
    assert found.start(ElectionState(3, LOCAL.id), 0) == [
        SaveElection(ElectionState(4, None, LOCAL)),
        SaveElection(ElectionState(4, LOCAL.id)),
        BeginEpoch(4, (LOCAL,)),
    ]
    assert found.deadline_ms is None


def test_an_observer_never_stands() -> None:
    found = machine(voters=2, local=KEYS[4])
    found.start(None, 0)
    assert found.tick(LATER) == []
    assert isinstance(found.state, Unattached)


def test_it_asks_before_it_stands() -> None:
    found = machine()
    found.start(ElectionState(3), 0)
    assert found.tick(0) == []
    assert found.tick(LATER) == [RequestVotes(3, pre_vote=True)]
    assert isinstance(found.state, Prospective)
    assert found.vote_answered(KEYS[1], 3, LATER, granted=True, pre=True) == [
        SaveElection(ElectionState(4, None, LOCAL)),
        RequestVotes(4, pre_vote=False),
    ]


def test_a_majority_makes_the_leader() -> None:
    found = candidate()
    assert found.vote_answered(KEYS[1], 4, LATER, granted=True, pre=False) == [
        SaveElection(ElectionState(4, LOCAL.id)),
        BeginEpoch(4, (LOCAL, KEYS[1])),
    ]
    assert found.leader_id == LOCAL.id


@pytest.mark.parametrize(
    ("voter", "epoch", "pre"), [(KEYS[1], 3, False), (KEYS[4], 4, False), (KEYS[1], 4, True)]
)
def test_answers_to_other_questions_do_not_count(voter: ReplicaKey, epoch: int, pre: bool) -> None:
    found = candidate()
    assert found.vote_answered(voter, epoch, LATER, granted=True, pre=pre) == []
    assert isinstance(found.state, Candidate)


def test_one_voter_counts_once() -> None:
    found = machine(voters=5)
    found.start(ElectionState(3), 0)
    found.tick(LATER)
    for _ in range(3):
        assert found.vote_answered(KEYS[1], 3, LATER, granted=True, pre=True) == []
    assert isinstance(found.state, Prospective)


def test_a_lost_pre_vote_goes_back_to_waiting() -> None:
    found = machine()
    found.start(ElectionState(3), 0)
    found.tick(LATER)
    for voter in KEYS[1:3]:
        found.vote_answered(voter, 3, LATER, granted=False, pre=True)
    assert isinstance(found.state, Unattached)
    assert found.epoch == 3


def test_a_lost_pre_vote_goes_back_to_the_leader() -> None:
    found = machine()
    found.start(ElectionState(3, 2), 0)
    found.tick(LATER)
    for voter in KEYS[1:3]:
        found.vote_answered(voter, 3, LATER, granted=False, pre=True)
    assert isinstance(found.state, Follower)
    assert found.leader_id == 2


def test_a_candidate_without_a_majority_asks_again_later() -> None:
    found = candidate()
    for voter in KEYS[1:3]:
        assert found.vote_answered(voter, 4, LATER, granted=False, pre=False) == []
    assert found.tick(2 * LATER) == [RequestVotes(4, pre_vote=True)]
    granted, _ = found.vote_requested(KEYS[1], 4, (9, 99), 2 * LATER, pre=False)
    assert not granted, "it has voted for itself in this epoch"


class TestVotes:
    @pytest.mark.parametrize(
        ("log_end", "granted"), [((3, 10), True), ((3, 9), False), ((2, 99), False), ((4, 0), True)]
    )
    def test_only_a_log_as_long_as_ours_gets_one(
        self, log_end: tuple[int, int], granted: bool
    ) -> None:
        found = machine()
        found.start(ElectionState(3), 0)
        for pre in (True, False):
            assert found.vote_requested(KEYS[1], 4, log_end, 0, pre=pre)[0] is granted

    def test_a_vote_is_saved_and_given_once(self) -> None:
        found = machine()
        found.start(ElectionState(3), 0)
        granted, effects = found.vote_requested(KEYS[1], 4, (3, 10), 0, pre=False)
        assert granted
        assert effects[-1] == SaveElection(ElectionState(4, None, KEYS[1]))
        assert not found.vote_requested(KEYS[2], 4, (3, 10), 0, pre=False)[0]
        assert found.vote_requested(KEYS[1], 4, (3, 10), 0, pre=False) == (True, [])
        again = machine()
        again.start(ElectionState(4, None, KEYS[1]), 0)
        assert not again.vote_requested(KEYS[2], 4, (3, 10), 0, pre=False)[0]

    def test_a_disk_that_came_back_empty_is_another_voter(self) -> None:
        found = machine()
        found.start(ElectionState(4, None, KEYS[1]), 0)
        other = ReplicaKey(KEYS[1].id, Uuid(b"z" * 16))
        assert not found.vote_requested(other, 4, (3, 10), 0, pre=False)[0]

    def test_an_old_epoch_gets_none(self) -> None:
        found = machine()
        found.start(ElectionState(5), 0)
        assert found.vote_requested(KEYS[1], 4, (9, 99), 0, pre=False) == (False, [])

    def test_a_pre_vote_binds_nobody(self) -> None:
        found = machine()
        found.start(ElectionState(3), 0)
        assert found.vote_requested(KEYS[1], 3, (3, 10), 0, pre=True) == (True, [])
        assert found.vote_requested(KEYS[2], 3, (3, 10), 0, pre=False)[0]

    @pytest.mark.parametrize("pre", [True, False])
    def test_a_leader_gives_none_in_its_epoch(self, pre: bool) -> None:
        found = leader()
        assert found.vote_requested(KEYS[1], 4, (9, 99), LATER, pre=pre) == (False, [])
        assert isinstance(found.state, Leader)

    def test_who_has_led_an_epoch_gives_none_in_it(self) -> None:
        found = machine()
        found.start(ElectionState(4, LOCAL.id), 0)
        assert not found.vote_requested(KEYS[1], 4, (9, 99), 0, pre=False)[0]


def test_a_higher_epoch_ends_a_leaders() -> None:
    found = leader()
    assert found.epoch_seen(4, LATER) == []
    assert found.epoch_seen(5, LATER) == [SaveElection(ElectionState(5))]
    assert found.log_synced(100) == []


def test_a_leader_that_is_heard_of_is_followed() -> None:
    found = candidate()
    assert found.leader_seen(2, 4, LATER) == [SaveElection(ElectionState(4, 2, LOCAL))]
    assert found.leader_seen(2, 4, LATER) == []
    assert found.leader_seen(3, 3, LATER) == [], "an epoch that is over"


def test_two_leaders_of_one_epoch_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
    found = leader()
    with pytest.raises(AssertionError, match="two leaders in epoch 4"):
        found.leader_seen(2, 4, LATER)


def test_who_resigns_waits_for_the_next_epoch() -> None:
    found = leader()
    assert found.resign(LATER) == []
    assert isinstance(found.state, Resigned)
    assert found.tick(2 * LATER) == [SaveElection(ElectionState(5))]


def test_nothing_is_committed_before_a_record_of_the_epoch() -> None:
    found = machine(voters=1)
    found.start(None, 0)
    assert found.log_synced(10) == []
    assert found.log_synced(11) == [AdvanceHighWatermark(11)]
    assert found.log_synced(11) == []
    assert found.log_synced(15) == [AdvanceHighWatermark(15)]


def test_the_leader_alone_commits_nothing_for_three() -> None:
    found = leader()
    assert found.log_synced(99) == []
    assert found.progress()[LOCAL.id].end_offset == 99
