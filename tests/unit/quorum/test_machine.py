"""The quorum's state machine, transition by transition."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.quorum.control import QuorumRecords
from skylog.quorum.effects import (
    AdvanceHighWatermark,
    AppendFetched,
    AppendVoters,
    BeginEpoch,
    InstallSnapshot,
    SaveElection,
    Send,
    TruncateTo,
    WriteSnapshot,
)
from skylog.quorum.election import ElectionState
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Leadership,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from skylog.quorum.replica import QuorumOptions
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet

VOTERS = [
    Voter(
        ReplicaKey(number, Uuid(bytes([number]) * 16)),
        (Endpoint("CONTROLLER", "localhost", 9000 + number),),
    )
    for number in range(1, 7)
]
KEYS = [voter.key for voter in VOTERS]
LOCAL = KEYS[0]
LATER = 1_000_000


@dataclass
class LogEnd:
    end_offset: int = 10
    last_epoch: int = 3
    start_offset: int = 0
    quorum: QuorumRecords = field(default_factory=QuorumRecords)
    voters_offset: int = 1
    voters_before: VoterSet | None = None
    latest_snapshot: SnapshotId | None = None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self.latest_snapshot

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return 100 if snapshot_id == self.latest_snapshot else None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        ends = {1: 4, 3: min(10, self.end_offset), self.last_epoch: self.end_offset}
        found = max((known for known in ends if known <= epoch), default=1)
        return EpochEnd(found, ends[found])


def machine(voters: int = 3, log: LogEnd | None = None, local: Voter = VOTERS[0]) -> QuorumMachine:
    log = log or LogEnd()
    log.quorum = QuorumRecords(1, VoterSet(tuple(VOTERS[:voters])))
    return QuorumMachine(local, log, QuorumOptions(), random.Random(1))


def sends(effects: list[Any]) -> list[Any]:
    return [effect.request for effect in effects if isinstance(effect, Send)]


def sent(effects: list[Any], kind: type, peer: int = 2) -> int:
    """The number of the request of this kind to this peer."""
    (found,) = [
        effect
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.request, kind) and effect.peer.id == peer
    ]
    return int(found.correlation_id)


def vote(found: QuorumMachine, number: int, granted: bool = True) -> list[Any]:
    told = Leadership(found.epoch)
    effects = found.answered(number, VoteResponse(ErrorCode.NONE, told, granted), LATER)
    return effects + found.tick(LATER)


def candidate() -> tuple[QuorumMachine, list[Any]]:
    """Of three, in epoch 4, with its own vote."""
    found = machine()
    found.start(ElectionState(3), 0)
    effects = vote(found, sent(found.tick(LATER), VoteRequest))
    assert isinstance(found.state, Candidate)
    return found, effects


def leader(log: LogEnd | None = None) -> QuorumMachine:
    """Of three, in epoch 4, with the record of its epoch written, synced and fetched by one."""
    log = log or LogEnd()
    found = machine(log=log)
    found.start(ElectionState(3), 0)
    effects = vote(found, sent(found.tick(LATER), VoteRequest))
    vote(found, sent(effects, VoteRequest))
    assert isinstance(found.state, Leader)
    log.end_offset, log.last_epoch = 11, 4
    found.log_synced(11, LATER)
    return found


def fetch(found: QuorumMachine, key: ReplicaKey, offset: int, epoch: int = 4) -> Any:
    last_epoch = 4 if offset > 10 else 3
    return found.receive(FetchRequest(key, epoch, offset, last_epoch), LATER)


def follower(log: LogEnd | None = None) -> tuple[QuorumMachine, int]:
    """Of node 2 in epoch 4, with a fetch under way."""
    found = machine(log=log)
    found.start(ElectionState(3), 0)
    told = BeginEpochRequest(2, 4, VOTERS[1].endpoints, LOCAL)
    response, effects = found.receive(told, 0)
    assert response.error is ErrorCode.NONE
    assert effects == [SaveElection(ElectionState(4, 2))]
    return found, sent(found.tick(0), FetchRequest)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (None, Unattached),
        (ElectionState(3), Unattached),
        (ElectionState(3, LOCAL.id), Resigned),
        (ElectionState(3, None, LOCAL), Candidate),
        (ElectionState(3, 2), Follower),
        (ElectionState(3, 2, LOCAL), Follower),
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


def test_an_observer_never_stands_and_looks_for_the_leader() -> None:
    found = machine(voters=2, local=VOTERS[4])
    found.start(None, 0)
    (request,) = sends(found.tick(LATER))
    assert isinstance(request, FetchRequest)
    assert isinstance(found.state, Unattached)


def test_it_asks_before_it_stands() -> None:
    found = machine()
    found.start(ElectionState(3), 0)
    assert not any(isinstance(each, VoteRequest) for each in sends(found.tick(0)))
    found = machine()
    found.start(ElectionState(3), 0)
    requests = sends(found.tick(LATER))
    assert requests == [VoteRequest(LOCAL, 3, 3, 10, True, key) for key in KEYS[1:3]]
    assert isinstance(found.state, Prospective)
    _, effects = candidate()
    assert effects[0] == SaveElection(ElectionState(4, None, LOCAL))
    assert sends(effects) == [VoteRequest(LOCAL, 4, 3, 10, False, key) for key in KEYS[1:3]]


def test_a_majority_makes_the_leader_who_tells_the_others() -> None:
    found, asked = candidate()
    effects = vote(found, sent(asked, VoteRequest))
    assert effects[:2] == [
        SaveElection(ElectionState(4, LOCAL.id)),
        BeginEpoch(4, (LOCAL, KEYS[1])),
    ]
    told = [BeginEpochRequest(1, 4, VOTERS[0].endpoints, key) for key in KEYS[1:3]]
    assert sends(effects) == told
    assert found.leader_id == LOCAL.id


def test_answers_to_what_is_no_longer_asked_do_not_count() -> None:
    found = machine()
    found.start(ElectionState(3), 0)
    asked = found.tick(LATER)
    vote(found, sent(asked, VoteRequest, 2))
    assert isinstance(found.state, Candidate)
    vote(found, sent(asked, VoteRequest, 3))
    vote(found, sent(asked, VoteRequest, 2))
    assert isinstance(found.state, Candidate), "pre-votes are no votes"


def test_a_lost_pre_vote_goes_back_to_waiting() -> None:
    found = machine()
    found.start(ElectionState(3), 0)
    asked = found.tick(LATER)
    for peer in (2, 3):
        vote(found, sent(asked, VoteRequest, peer), granted=False)
    assert isinstance(found.state, Unattached)
    assert found.epoch == 3


def test_a_lost_pre_vote_goes_back_to_the_leader() -> None:
    found = machine()
    found.start(ElectionState(3, 2), 0)
    asked = found.tick(LATER)
    for peer in (2, 3):
        vote(found, sent(asked, VoteRequest, peer), granted=False)
    assert isinstance(found.state, Follower)
    assert found.leader_id == 2


def test_a_candidate_without_a_majority_asks_again_later() -> None:
    found, asked = candidate()
    for peer in (2, 3):
        vote(found, sent(asked, VoteRequest, peer), granted=False)
    assert sends(found.tick(2 * LATER))[0].pre_vote
    response, _ = found.receive(VoteRequest(KEYS[1], 4, 3, 99, False), 2 * LATER)
    assert not response.granted, "it has voted for itself in this epoch"


class TestVotes:
    @pytest.mark.parametrize(
        ("last_epoch", "end_offset", "granted"),
        [(3, 10, True), (3, 9, False), (2, 99, False), (4, 0, True)],
    )
    def test_only_a_log_as_long_as_ours_gets_one(
        self, last_epoch: int, end_offset: int, granted: bool
    ) -> None:
        found = machine()
        found.start(ElectionState(3), 0)
        for pre in (True, False):
            request = VoteRequest(KEYS[1], 5, last_epoch, end_offset, pre)
            assert found.receive(request, 0)[0].granted is granted

    def test_a_vote_is_saved_and_given_once(self) -> None:
        found = machine()
        found.start(ElectionState(3), 0)
        request = VoteRequest(KEYS[1], 4, 3, 10, False)
        response, effects = found.receive(request, 0)
        assert response.granted
        assert effects[-1] == SaveElection(ElectionState(4, None, KEYS[1]))
        other = VoteRequest(KEYS[2], 4, 3, 10, False)
        assert not found.receive(other, 0)[0].granted
        again, effects = found.receive(request, 0)
        assert (again.granted, effects) == (True, [])
        restarted = machine()
        restarted.start(ElectionState(4, None, KEYS[1]), 0)
        assert not restarted.receive(other, 0)[0].granted

    def test_a_disk_that_came_back_empty_is_another_voter(self) -> None:
        found = machine()
        found.start(ElectionState(4, None, KEYS[1]), 0)
        other = ReplicaKey(KEYS[1].id, Uuid(b"z" * 16))
        assert not found.receive(VoteRequest(other, 4, 3, 10, False), 0)[0].granted

    @pytest.mark.parametrize(
        ("request_", "error"),
        [
            (VoteRequest(KEYS[1], 4, 3, 99, False), ErrorCode.FENCED_LEADER_EPOCH),
            (VoteRequest(KEYS[1], 6, 6, 99, False), ErrorCode.INVALID_REQUEST),
            (VoteRequest(KEYS[1], 6, 3, -1, False), ErrorCode.INVALID_REQUEST),
            (VoteRequest(LOCAL, 6, 3, 99, False), ErrorCode.INVALID_REQUEST),
            (VoteRequest(KEYS[1], 6, 3, 99, False, KEYS[2]), ErrorCode.INVALID_VOTER_KEY),
        ],
    )
    def test_invalid_requests_get_no_vote(self, request_: VoteRequest, error: ErrorCode) -> None:
        found = machine()
        found.start(ElectionState(5), 0)
        response, _ = found.receive(request_, 0)
        assert (response.error, response.granted) == (error, False)

    def test_a_pre_vote_is_not_binding(self) -> None:
        found = machine()
        found.start(ElectionState(3), 0)
        response, effects = found.receive(VoteRequest(KEYS[1], 3, 3, 10, True), 0)
        assert (response.granted, effects) == (True, [])
        assert found.receive(VoteRequest(KEYS[2], 4, 3, 10, False), 0)[0].granted

    @pytest.mark.parametrize("pre", [True, False])
    def test_a_leader_gives_no_vote_in_its_epoch(self, pre: bool) -> None:
        found = leader()
        response, effects = found.receive(VoteRequest(KEYS[1], 4, 3, 99, pre), LATER)
        assert (response.granted, effects) == (False, [])
        assert isinstance(found.state, Leader)

    def test_a_follower_of_a_live_leader_refuses_pre_votes(self) -> None:
        found, number = follower()
        asked = VoteRequest(KEYS[2], 4, 3, 10, True)
        assert found.receive(asked, 0)[0].granted
        found.answered(number, FetchResponse(ErrorCode.NONE, Leadership(4, 2), 5), 0)
        assert not found.receive(asked, 0)[0].granted

    def test_a_former_leader_gives_no_vote_in_its_epoch(self) -> None:
        found = machine()
        found.start(ElectionState(4, LOCAL.id), 0)
        assert not found.receive(VoteRequest(KEYS[1], 4, 3, 99, False), 0)[0].granted


class TestLeader:
    def test_a_higher_epoch_ends_it(self) -> None:
        found = leader()
        request = VoteRequest(KEYS[1], 5, 3, 1, False)
        assert found.receive(request, LATER)[1] == [SaveElection(ElectionState(5))]
        assert found.log_synced(100, LATER) == []

    def test_two_leaders_of_one_epoch_end_the_process(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
        with pytest.raises(AssertionError, match="two leaders in epoch 4"):
            leader().receive(BeginEpochRequest(2, 4), LATER)

    def test_nothing_is_committed_before_a_record_of_the_epoch(self) -> None:
        found = leader()
        assert fetch(found, KEYS[1], 10)[1] == []
        assert fetch(found, KEYS[1], 11)[1] == [AdvanceHighWatermark(11)]
        assert fetch(found, KEYS[2], 11)[1] == []

    def test_observers_commit_nothing(self) -> None:
        found = leader()
        assert fetch(found, KEYS[4], 11)[1] == []
        assert found.high_watermark == 0

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [(3, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)],
    )
    def test_only_its_own_epoch_is_answered(self, epoch: int, error: ErrorCode) -> None:
        response, effects = fetch(leader(), KEYS[1], 10, epoch)
        assert (response.error, effects) == (error, [])
        assert (response.leadership.epoch, response.leadership.leader_id) == (4, 1)

    def test_a_diverging_follower_learns_where(self) -> None:
        found = leader()
        response, _ = found.receive(FetchRequest(KEYS[1], 4, 9, 2), LATER)
        assert response.diverging == EpochEnd(1, 4)
        response, _ = found.receive(FetchRequest(KEYS[1], 4, 8, 3), LATER)
        assert (response.diverging, response.read_from) == (None, 8)

    def test_a_follower_behind_the_log_is_sent_to_the_snapshot(self) -> None:
        log = LogEnd(start_offset=5, latest_snapshot=SnapshotId(5, 3))
        found = leader(log)
        response, _ = found.receive(FetchRequest(KEYS[1], 4, 2, 1), LATER)
        assert response.snapshot_id == SnapshotId(5, 3)
        wanted = FetchSnapshotRequest(KEYS[1], 4, SnapshotId(5, 3), 60)
        assert found.receive(wanted, LATER)[0].size == 100
        for snapshot_id, position, error in (
            (SnapshotId(5, 3), 100, ErrorCode.POSITION_OUT_OF_RANGE),
            (SnapshotId(4, 3), 0, ErrorCode.SNAPSHOT_NOT_FOUND),
        ):
            refused = FetchSnapshotRequest(KEYS[1], 4, snapshot_id, position)
            assert found.receive(refused, LATER)[0].error is error

    def test_it_resigns_when_no_majority_fetches(self) -> None:
        found = leader()
        found.receive(FetchRequest(KEYS[1], 4, 10, 3), LATER + 2000)
        found.tick(LATER + 4000)
        assert isinstance(found.state, Leader)
        effects = found.tick(LATER + 5000)
        assert isinstance(found.state, Resigned)
        assert [each.successors[0] for each in sends(effects)] == [KEYS[1], KEYS[1]]

    def test_a_resigned_leader_waits_for_the_next_epoch(self) -> None:
        found = leader()
        assert found.resign(LATER) == []
        assert isinstance(found.state, Resigned)
        assert SaveElection(ElectionState(5)) in found.tick(2 * LATER)


class TestFollower:
    def test_it_appends_syncs_and_only_then_acknowledges(self) -> None:
        log = LogEnd()
        found, number = follower(log)
        told = Leadership(4, 2)
        response = FetchResponse(ErrorCode.NONE, told, 12, records=("a", "b"))
        assert found.answered(number, response, 1) == [AppendFetched(("a", "b"))]
        log.end_offset, log.last_epoch = 12, 4
        assert found.tick(1) == []
        assert found.log_synced(12, 2) == [AdvanceHighWatermark(12)]
        assert sends(found.tick(2)) == [FetchRequest(LOCAL, 4, 12, 4, 12)]

    def test_it_cuts_what_parts_from_the_leader(self) -> None:
        found, number = follower()
        response = FetchResponse(ErrorCode.NONE, Leadership(4, 2), diverging=EpochEnd(3, 7))
        assert found.answered(number, response, 1) == [TruncateTo(7)]

    def test_it_never_cuts_what_is_committed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
        found, number = follower()
        found.answered(number, FetchResponse(ErrorCode.NONE, Leadership(4, 2), 8), 1)
        number = sent(found.tick(1), FetchRequest)
        response = FetchResponse(ErrorCode.NONE, Leadership(4, 2), diverging=EpochEnd(3, 7))
        with pytest.raises(AssertionError, match="committed up to 8"):
            found.answered(number, response, 1)

    def test_it_takes_a_snapshot_piece_by_piece(self) -> None:
        found, number = follower()
        told, wanted = Leadership(4, 2), SnapshotId(20, 4)
        found.answered(number, FetchResponse(ErrorCode.NONE, told, snapshot_id=wanted), 1)
        number = sent(found.tick(1), FetchSnapshotRequest)
        piece = FetchSnapshotResponse(ErrorCode.NONE, told, wanted, 5, 0, b"abc")
        assert found.answered(number, piece, 1) == [WriteSnapshot(wanted, 0, b"abc")]
        number = sent(found.tick(1), FetchSnapshotRequest)
        piece = FetchSnapshotResponse(ErrorCode.NONE, told, wanted, 5, 3, b"de")
        assert found.answered(number, piece, 1) == [
            WriteSnapshot(wanted, 3, b"de"),
            InstallSnapshot(wanted),
            AdvanceHighWatermark(20),
        ]

    def test_a_snapshot_that_is_gone_is_asked_for_anew(self) -> None:
        found, number = follower()
        told, wanted = Leadership(4, 2), SnapshotId(20, 4)
        found.answered(number, FetchResponse(ErrorCode.NONE, told, snapshot_id=wanted), 1)
        number = sent(found.tick(1), FetchSnapshotRequest)
        gone = FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, told)
        assert found.answered(number, gone, 1) == []
        assert isinstance(sends(found.tick(100))[0], FetchRequest)

    def test_the_first_successor_stands_at_once(self) -> None:
        found, _ = follower()
        found.receive(EndEpochRequest(2, 4, (LOCAL, KEYS[2])), 50)
        assert sends(found.tick(50))[0].pre_vote
        found, _ = follower()
        found.receive(EndEpochRequest(2, 4, (KEYS[2], LOCAL)), 50)
        assert not any(isinstance(each, VoteRequest) for each in sends(found.tick(50)))

    def test_an_unreachable_leader_is_looked_for_elsewhere(self) -> None:
        found, number = follower()
        found.answered(number, None, 1)
        (effect,) = found.tick(1)
        assert isinstance(effect, Send)
        assert effect.peer.id == 3

    def test_a_voter_that_has_moved_says_so(self) -> None:
        moved = Voter(LOCAL, (Endpoint("CONTROLLER", "elsewhere", 1),))
        found = machine(local=moved)
        found.start(ElectionState(3), 0)
        found.receive(BeginEpochRequest(2, 4, VOTERS[1].endpoints, LOCAL), 0)
        number = sent(found.tick(0), FetchRequest)
        found.answered(number, FetchResponse(ErrorCode.NONE, Leadership(4, 2), 5), 1000)
        assert UpdateVoterRequest(moved, 4) in sends(found.tick(2000))


class TestVoterChanges:
    def committed(self) -> tuple[QuorumMachine, LogEnd]:
        log = LogEnd()
        found = leader(log)
        fetch(found, KEYS[1], 11)
        fetch(found, KEYS[3], 11)
        return found, log

    def test_an_observer_that_has_caught_up_becomes_a_voter(self) -> None:
        found, _ = self.committed()
        response, effects = found.receive(AddVoterRequest(VOTERS[3]), LATER)
        assert (response.error, response.end_offset) == (ErrorCode.NONE, 12)
        assert effects == [AppendVoters(VoterSet(tuple(VOTERS[:4])))]

    @pytest.mark.parametrize(
        ("request_", "error"),
        [
            (AddVoterRequest(VOTERS[4]), ErrorCode.REQUEST_TIMED_OUT),
            (AddVoterRequest(VOTERS[1]), ErrorCode.DUPLICATE_VOTER),
            (RemoveVoterRequest(KEYS[4]), ErrorCode.VOTER_NOT_FOUND),
            (RemoveVoterRequest(ReplicaKey(2, Uuid(b"z" * 16))), ErrorCode.VOTER_NOT_FOUND),
            (UpdateVoterRequest(VOTERS[4], 4), ErrorCode.VOTER_NOT_FOUND),
            (UpdateVoterRequest(VOTERS[1], 3), ErrorCode.FENCED_LEADER_EPOCH),
        ],
    )
    def test_invalid_voter_changes_are_refused(self, request_: Any, error: ErrorCode) -> None:
        found, _ = self.committed()
        response, effects = found.receive(request_, LATER)
        assert (response.error, effects) == (error, [])

    def test_one_change_at_a_time(self) -> None:
        found, log = self.committed()
        log.voters_offset = 11
        response, effects = found.receive(RemoveVoterRequest(KEYS[2]), LATER)
        assert (response.error, effects) == (ErrorCode.REQUEST_TIMED_OUT, [])

    def test_static_voters_do_not_change(self) -> None:
        found, log = self.committed()
        log.quorum = QuorumRecords(0, log.quorum.voters)
        response, _ = found.receive(RemoveVoterRequest(KEYS[2]), LATER)
        assert response.error is ErrorCode.UNSUPPORTED_VERSION

    def test_a_leader_that_is_voted_out_goes_when_that_is_committed(self) -> None:
        found, log = self.committed()
        (effect,) = found.receive(RemoveVoterRequest(LOCAL), LATER)[1]
        log.quorum = QuorumRecords(1, effect.voters)
        log.end_offset, log.voters_offset = 12, 11
        assert fetch(found, KEYS[1], 12)[1] == []
        effects = fetch(found, KEYS[2], 12)[1]
        assert effects == [AdvanceHighWatermark(12)]
        assert isinstance(found.state, Resigned)
