"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: every state and every error, as in Kafka."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skylog.groups.members import GroupState
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode
from tests.unit.groups.support import (
    GROUP,
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Bench,
    Call,
    subscription,
)

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


# A new group


def test_first_join_of_a_dynamic_member_gives_it_an_id_and_writes_an_empty_group() -> None:
    bench = Bench()
    call = bench.join(version=4)
    assert (call.code, call.reply.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "client-0001")
    assert bench.group.state is EMPTY
    assert list(bench.group.pending_joins) == ["client-0001"]
    assert len(bench.log) == 1


def test_versions_before_4_join_at_once() -> None:
    bench = Bench()
    call = bench.join(version=3)
    assert not call.answered
    bench.advance(INITIAL_DELAY_MS)
    assert (call.code, call.reply.member_id) == (ErrorCode.NONE, "client-0001")


def test_a_static_member_joins_at_once_under_its_own_name() -> None:
    bench = Bench()
    call = bench.join(instance_id="instance")
    bench.advance(INITIAL_DELAY_MS)
    assert call.reply.member_id == "instance-0001"
    assert call.reply.members[0].group_instance_id == "instance"


def test_a_join_with_an_id_to_a_group_that_does_not_exist() -> None:
    bench = Bench()
    call = bench.join("stranger")
    assert (call.code, call.reply.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "stranger")
    assert bench.machine.group(GROUP) is None
    assert not bench.log


def test_the_initial_delay_is_extended_by_those_who_come_and_ends_with_the_rebalance_timeout() -> (
    None
):
    bench = Bench()
    rebalance_ms = 7_000
    _, first = bench.new_member(rebalance_ms=rebalance_ms)
    for _ in range(2):
        bench.advance(INITIAL_DELAY_MS - 1)
        bench.new_member(rebalance_ms=rebalance_ms)
        bench.advance(1)
        assert not first.answered
    bench.new_member(rebalance_ms=rebalance_ms)
    bench.advance(1_000)
    assert first.code is ErrorCode.NONE
    assert len(first.reply.members) == 4


def test_without_newcomers_the_initial_delay_is_waited_once() -> None:
    bench = Bench()
    _, call = bench.new_member()
    bench.advance(INITIAL_DELAY_MS - 1)
    assert not call.answered
    bench.advance(1)
    assert call.code is ErrorCode.NONE
    assert bench.group.state is COMPLETING


# Becoming a stable group


def test_only_the_leader_is_told_the_members() -> None:
    bench = Bench()
    (one, first), (two, second) = bench.new_member(), bench.new_member()
    bench.advance(INITIAL_DELAY_MS * 2)
    assert first.reply.leader == second.reply.leader == one
    assert [member.member_id for member in first.reply.members] == [one, two]
    assert first.reply.members[0].metadata == subscription("topic")
    assert second.reply.members == []
    assert first.reply.generation_id == second.reply.generation_id == 1
    assert second.reply.protocol_name == "range"


def test_followers_wait_for_the_leaders_assignment() -> None:
    bench = Bench()
    (one, _), (two, _) = bench.new_member(), bench.new_member()
    bench.advance(INITIAL_DELAY_MS * 2)
    follower = bench.sync(two, 1)
    assert not follower.answered
    leader = bench.sync(one, 1, **{one: b"1", two: b"2", "stranger": b"3"})
    assert (leader.reply.assignment, follower.reply.assignment) == (b"1", b"2")
    assert follower.reply.protocol_type == "consumer"
    assert bench.group.state is STABLE
    assert bench.sync(two, 1).reply.assignment == b"2"


def test_a_new_leader_of_the_partition_knows_the_generation_and_its_assignments() -> None:
    bench = Bench()
    members = bench.stable(2)
    bench.join(members[0])  # a rebalance that is not finished is not remembered
    other = bench.reload()
    assert (other.group.state, other.group.generation) == (STABLE, 1)
    for member in members:
        assert other.sync(member, 1).reply.assignment == f"part of {member}".encode()


def test_a_snapshot_holds_what_the_log_holds() -> None:
    bench = Bench()
    members = bench.stable(2)
    bench.commit(members[0], 1)
    bench.join(members[0])
    taken = list(bench.machine.snapshot())
    assert len(taken) == 2
    assert taken == list(bench.reload().machine.snapshot())


def test_a_member_without_assignment_gets_an_empty_one() -> None:
    bench = Bench()
    (one, _), (two, _) = bench.new_member(), bench.new_member()
    bench.advance(INITIAL_DELAY_MS * 2)
    bench.sync(one, 1, **{one: b"1"})
    assert bench.sync(two, 1).reply.assignment == b""


def test_the_protocol_with_most_votes_among_those_that_all_support() -> None:
    bench = Bench()
    _, first = bench.new_member("sticky", "range", "own")
    bench.new_member("range", "sticky")
    bench.new_member("range", "sticky")
    bench.advance(INITIAL_DELAY_MS * 3)
    assert first.reply.protocol_name == "range"


@pytest.mark.parametrize(
    ("protocols", "protocol_type"), [(("other",), "consumer"), (("range",), "connect")]
)
def test_a_member_that_does_not_fit_the_group(
    protocols: tuple[str, ...], protocol_type: str
) -> None:
    bench = Bench()
    [member] = bench.stable()
    for member_id in ("", member):
        call = bench.join(member_id, *protocols, protocol_type=protocol_type)
        assert (call.code, call.reply.member_id) == (
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            member_id,
        )
    assert bench.group.state is STABLE


def test_a_join_without_protocol_type() -> None:
    assert Bench().join(protocol_type="").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# Rejoining


def test_a_follower_that_rejoins_unchanged_gets_the_current_generation() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    call = bench.join(follower)
    assert (call.reply.generation_id, call.reply.leader, call.reply.members) == (1, leader, [])
    assert bench.group.state is STABLE


def test_a_leader_that_rejoins_makes_a_stable_group_rebalance() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    rejoined = bench.join(leader)
    assert bench.group.state is PREPARING
    assert not rejoined.answered
    assert bench.heartbeat(follower, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join(follower)
    assert rejoined.reply.generation_id == 2


def test_a_member_that_changed_makes_the_group_rebalance() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    changed = bench.join(follower, metadata=subscription("other"))
    assert bench.group.state is PREPARING
    bench.join(leader)
    assert changed.reply.generation_id == 2
    assert bench.group.subscribed_topics == {"topic", "other"}


def test_rejoining_between_join_and_sync() -> None:
    bench = Bench()
    (one, _), (two, _) = bench.new_member(), bench.new_member()
    bench.advance(INITIAL_DELAY_MS * 2)
    waiting = bench.sync(two, 1)
    assert len(bench.join(one).reply.members) == 2
    changed = bench.join(one, metadata=subscription("other"))
    assert not changed.answered
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.sync(two, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join(two)
    assert changed.reply.generation_id == 2


def test_a_new_member_makes_the_others_rejoin_and_those_who_do_not_are_out() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    _, new = bench.new_member()
    rejoined = bench.join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        assert not new.answered
        bench.heartbeat(follower, 1)  # alive, but not rejoining
        bench.advance(5_000)
    assert new.code is rejoined.code is ErrorCode.NONE
    assert follower not in bench.group.members
    assert bench.heartbeat(follower, 1).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_rejoin_is_followed_by_one_that_did() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    call = bench.join(follower, metadata=subscription("other"))
    bench.advance(SESSION_MS)
    assert call.reply.leader == follower
    assert leader not in bench.group.members


def test_a_pending_member_holds_the_rebalance_up_until_its_session_ends() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.join()
    call = bench.join(member)
    bench.advance(SESSION_MS - 1)
    assert not call.answered
    bench.advance(1)
    assert call.reply.generation_id == 2


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout() -> None:
    bench = Bench()
    (one, _), (two, _) = bench.new_member(), bench.new_member()
    bench.advance(INITIAL_DELAY_MS * 2)
    bench.sync(one, 1, **{one: b"1"})
    for _ in range(REBALANCE_MS // 5_000):
        assert {one, two} == set(bench.group.members)
        for member in (one, two):
            assert bench.heartbeat(member, 1).code is ErrorCode.NONE
        bench.advance(5_000)
    assert set(bench.group.members) == {one}
    assert bench.group.state is PREPARING


def test_a_group_whose_members_all_go_is_empty_and_says_so_in_the_log() -> None:
    bench = Bench()
    bench.stable(2)
    bench.advance(SESSION_MS + REBALANCE_MS)
    assert bench.group.state is EMPTY
    assert (bench.group.generation, bench.group.leader) == (2, None)
    assert bench.reload().group.generation == 2


def test_a_new_member_that_waits_too_long_for_its_answer_is_out() -> None:
    bench = Bench()
    [member] = bench.stable(rebalance_ms=1_000_000)
    _, call = bench.new_member(rebalance_ms=1_000_000)
    for _ in range(60):
        assert not call.answered
        bench.heartbeat(member, 1)
        bench.advance(5_000)
    assert (call.code, call.reply.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_group_max_size() -> None:
    bench = Bench(GroupSettings(group_size_max=2))
    members = bench.stable(2)
    call = bench.join()
    assert (call.code, call.reply.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert bench.join(members[1]).code is ErrorCode.NONE
    bench.join(members[0])
    assert not bench.join(members[1]).answered or bench.group.state is COMPLETING
    assert len(bench.group.members) == 2


def test_a_loaded_group_over_its_size_rebalances() -> None:
    bench = Bench()
    members = bench.stable(3)
    bench.settings = GroupSettings(group_size_max=2)
    other = bench.reload()
    assert other.group.state is PREPARING
    assert other.heartbeat(members[0], 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    calls = [other.join(member) for member in members]
    assert calls[2].code is ErrorCode.GROUP_MAX_SIZE_REACHED


# Sessions


def test_heartbeats_keep_a_member_and_silence_loses_it() -> None:
    bench = Bench()
    [member] = bench.stable()
    for _ in range(5):
        bench.advance(SESSION_MS - 1)
        assert bench.heartbeat(member, 1).code is ErrorCode.NONE
    bench.advance(SESSION_MS)
    assert bench.heartbeat(member, 1).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_keep_a_member_too() -> None:
    bench = Bench()
    [member] = bench.stable()
    for _ in range(3):
        bench.advance(SESSION_MS - 1)
        assert bench.commit(member, 1).reply.topics[0].partitions[0].error_code == 0
    assert member in bench.group.members


def test_sessions_restart_on_a_new_leader() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.advance(SESSION_MS - 1)
    other = bench.reload()
    other.advance(SESSION_MS - 1)
    assert other.heartbeat(member, 1).code is ErrorCode.NONE
    other.advance(SESSION_MS)
    assert other.group.state is EMPTY


def test_a_new_member_has_its_own_session_once_it_is_answered() -> None:
    bench = Bench()
    call = bench.join(version=3)
    bench.advance(INITIAL_DELAY_MS)
    bench.settle(call.reply.member_id)
    bench.advance(SESSION_MS)
    assert bench.group.state is EMPTY


def test_a_heartbeat_starts_no_timer_of_its_own() -> None:
    bench = Bench()
    [member] = bench.stable()
    before = dict(bench.timers)
    bench.advance(1_000)
    bench.heartbeat(member, 1)
    assert bench.timers == before


# Refusals


def _sync(bench: Bench, member: str, generation: int, instance_id: str | None) -> Call:
    return bench.sync(member, generation, instance_id=instance_id)


def _commit(bench: Bench, member: str, generation: int, instance_id: str | None) -> Call:
    return bench.commit(member, generation, instance_id=instance_id)


@pytest.mark.parametrize("send", [Bench.heartbeat, _sync, _commit])
@pytest.mark.parametrize(
    ("member", "generation", "instance_id", "code"),
    [
        ("stranger", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", 9, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("{}", 0, None, ErrorCode.ILLEGAL_GENERATION),
        ("{}", 2, None, ErrorCode.ILLEGAL_GENERATION),
        ("{}", 1, "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", 1, "instance", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_a_members_identity_and_generation_are_checked(
    send: Callable[[Bench, str, int, str | None], Call],
    member: str,
    generation: int,
    instance_id: str | None,
    code: ErrorCode,
) -> None:
    bench = Bench()
    joined = bench.join(instance_id="instance")
    bench.advance(INITIAL_DELAY_MS)
    bench.settle(joined.reply.member_id)
    name = member.format(joined.reply.member_id)
    assert send(bench, name, generation, instance_id).code is code


@pytest.mark.parametrize("send", [Bench.heartbeat, _sync])
def test_members_of_a_group_that_does_not_exist_or_is_empty(
    send: Callable[[Bench, str, int, str | None], Call],
) -> None:
    bench = Bench()
    assert send(bench, "member", 0, None).code is ErrorCode.UNKNOWN_MEMBER_ID
    bench.join()
    assert send(bench, "client-0002", 0, None).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_between_join_and_sync_is_welcome_but_a_commit_is_not() -> None:
    bench = Bench()
    member, _ = bench.new_member()
    bench.advance(INITIAL_DELAY_MS)
    assert bench.heartbeat(member, 1).code is ErrorCode.NONE
    assert bench.commit(member, 1).code is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "code"),
    [
        ("consumer", "range", ErrorCode.NONE),
        (None, None, ErrorCode.NONE),
        ("connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_may_name_the_protocol_it_expects(
    protocol_type: str | None, protocol_name: str | None, code: ErrorCode
) -> None:
    bench = Bench()
    [member] = bench.stable()
    call = bench.sync(member, 1, protocol_type=protocol_type, protocol_name=protocol_name)
    assert call.code is code


# Static members


def _static_group(bench: Bench, *instances: str) -> list[str]:
    calls = [bench.join(instance_id=instance) for instance in instances]
    bench.advance(INITIAL_DELAY_MS * 2)
    members = [call.reply.member_id for call in calls]
    bench.settle(*members)
    return members


@pytest.mark.parametrize(
    ("version", "leads", "told", "skips"), [(8, False, 0, False), (9, True, 2, True)]
)
def test_a_static_leader_comes_back_without_a_rebalance(
    version: int, leads: bool, told: int, skips: bool
) -> None:
    bench = Bench()
    old, _ = _static_group(bench, "a", "b")
    call = bench.join(instance_id="a", version=version)
    new = call.reply.member_id
    assert (call.code, call.reply.generation_id, new) == (ErrorCode.NONE, 1, "a-0005")
    assert (call.reply.leader == new, len(call.reply.members)) == (leads, told)
    assert call.reply.skip_assignment is skips
    assert bench.group.state is STABLE
    assert bench.group.leader == new
    assert bench.sync(new, 1, instance_id="a").reply.assignment == f"part of {old}".encode()
    assert bench.heartbeat(old, 1, "a").code is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(old, 1).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.reload().group.static_members["a"] == new


def test_a_static_member_that_changes_the_protocol_makes_the_group_rebalance() -> None:
    bench = Bench()
    call = bench.join("", "range", "sticky", instance_id="a")
    bench.advance(INITIAL_DELAY_MS)
    bench.settle(call.reply.member_id)
    again = bench.join("", "sticky", instance_id="a")
    assert (again.reply.generation_id, again.reply.protocol_name) == (2, "sticky")


def test_a_static_members_second_incarnation_ends_what_the_first_waits_for() -> None:
    bench = Bench()
    first = bench.join(instance_id="a")
    second = bench.join(instance_id="a")
    assert (first.code, first.reply.member_id) == (ErrorCode.FENCED_INSTANCE_ID, "a-0001")
    bench.advance(INITIAL_DELAY_MS)
    assert second.reply.leader == second.reply.member_id == "a-0002"
    other = bench.join(instance_id="b")
    assert bench.group.state is PREPARING
    bench.join("a-0002", instance_id="a")
    assert other.answered
    waiting = bench.sync(other.reply.member_id, 2)
    third = bench.join(instance_id="b")
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    assert not third.answered
    assert bench.group.state is PREPARING


def test_static_members_stay_through_a_rebalance_that_they_miss() -> None:
    bench = Bench()
    one, two = _static_group(bench, "a", "b")
    call = bench.join(one, instance_id="a", rebalance_ms=5_000)
    assert bench.group.rebalance_timeout_ms == REBALANCE_MS
    for _ in range(REBALANCE_MS // 5_000):
        bench.heartbeat(two, 1, "b")
        bench.advance(5_000)
    assert call.reply.generation_id == 2
    assert set(bench.group.members) == {one, two}


def test_a_pending_id_is_not_for_static_members() -> None:
    bench = Bench()
    member = bench.join().reply.member_id
    assert bench.join(member, instance_id="a").code is ErrorCode.UNKNOWN_SERVER_ERROR


# Leaving


def test_the_last_member_leaves() -> None:
    bench = Bench()
    [member] = bench.stable()
    call = bench.leave(member)
    assert [m.error_code for m in call.reply.members] == [ErrorCode.NONE]
    assert bench.group.state is EMPTY
    assert not [key for key in bench.timers if key != "expiry"]


def test_one_of_two_leaves_and_the_other_rebalances() -> None:
    bench = Bench()
    one, two = bench.stable(2)
    bench.leave(one)
    assert bench.heartbeat(two, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.join(two).reply.leader == two


def test_a_member_leaves_while_it_waits() -> None:
    bench = Bench()
    one, two = bench.stable(2)
    waiting = bench.join(one)
    other = bench.join(two, metadata=subscription("other"))
    assert waiting.answered
    assert other.answered
    waiting = bench.sync(two, 2)
    bench.leave(two)
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_reports_each_member_by_itself() -> None:
    bench = Bench()
    member, _ = _static_group(bench, "a", "b")
    pending = bench.join().reply.member_id
    call = bench.leave(member, "stranger", pending, "")
    assert [m.error_code for m in call.reply.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert bench.group.state is PREPARING


@pytest.mark.parametrize(
    ("member", "instance_id", "code"),
    [
        ("", "a", ErrorCode.NONE),
        ("", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        ("{}", "a", ErrorCode.NONE),
        ("{}", "b", ErrorCode.FENCED_INSTANCE_ID),
        ("other", "a", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_static_members_are_removed_by_instance(
    member: str, instance_id: str, code: ErrorCode
) -> None:
    bench = Bench()
    one, _ = _static_group(bench, "a", "b")
    [left] = bench.leave(member.format(one), instance_id=instance_id).reply.members
    assert (left.error_code, left.group_instance_id) == (code, instance_id)
    assert ("a" in bench.group.static_members) is (code is not ErrorCode.NONE)


def test_leaving_a_group_that_does_not_exist() -> None:
    assert Bench().leave("member").code is ErrorCode.UNKNOWN_MEMBER_ID
