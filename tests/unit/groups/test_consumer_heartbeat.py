"""ConsumerGroupHeartbeat: how members join, share, revoke, are fenced, and leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skylog.groups.consumer.apis import check_heartbeat
from skylog.groups.consumer.consumer_group import ConsumerGroupState
from skylog.groups.consumer.member import MemberState
from skylog.groups.consumer.world import ConsumerConfig
from skylog.groups.requests import CheckSession
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tests.unit.groups.consumer_support import REBALANCE_MS, SESSION_MS, ConsumerBench, topic_id
from tests.unit.groups.support import GROUP


def test_one_member_owns_everything() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    assert member.numbers == [0, 1, 2, 3]
    assert member.epoch == bench.consumers.epoch == bench.consumers.target_epoch == 2
    assert bench.consumers.state is ConsumerGroupState.STABLE
    assert member.beat().reply.assignment is None, "nothing new"


def test_a_partition_is_assigned_only_after_its_last_owner_has_revoked_it() -> None:
    bench = ConsumerBench()
    first, second = bench.member("a"), bench.member("b")
    assert second.owned == frozenset()
    assert bench.of("b").state is MemberState.UNRELEASED_PARTITIONS
    everything = first.owned
    told = bench.beat("a", first.epoch)
    assert told.reply.member_epoch == first.epoch, "it stays in its epoch until it has revoked"
    assert bench.of("a").state is MemberState.UNREVOKED_PARTITIONS
    second.beat()
    assert second.owned == frozenset()
    assert bench.beat("a", first.epoch, owned=everything).reply.assignment is None
    second.beat()
    assert second.owned == frozenset(), "a goes on owning them"
    first.take(told)
    first.beat()
    second.beat()
    assert [first.numbers, second.numbers] == [[0, 1], [2, 3]]
    assert first.epoch == second.epoch == 3


def test_three_members_join_and_leave() -> None:
    bench = ConsumerBench()
    members = [bench.member("a")]
    for name in ("b", "c"):
        members.append(bench.member(name))
        bench.come_to_rest(*members)
    assert sorted(len(m.owned) for m in members) == [1, 1, 2]
    assert frozenset().union(*(m.owned for m in members)) == {(topic_id(1), p) for p in range(4)}
    bench.beat("c", -1)
    kept = [m.owned for m in members[:2]]
    bench.come_to_rest(*members[:2])
    assert [len(m.owned) for m in members[:2]] == [2, 2]
    assert all(before <= m.owned for before, m in zip(kept, members[:2], strict=True)), "sticky"


def test_a_target_has_its_time() -> None:
    bench = ConsumerBench(config=ConsumerConfig(assignment_interval_ms=1_000))
    first, second = bench.member("a"), bench.member("b")
    assert bench.consumers.state is ConsumerGroupState.ASSIGNING
    assert (first.epoch, second.epoch) == (2, 2)
    bench.advance(999)
    first.beat()
    assert bench.consumers.state is ConsumerGroupState.ASSIGNING
    bench.advance(1)
    bench.come_to_rest(first, second)
    assert [first.numbers, second.numbers] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("epoch", "owned", "code"),
    [
        (3, None, ErrorCode.NONE),
        (2, None, ErrorCode.FENCED_MEMBER_EPOCH),
        (2, (0, 1), ErrorCode.NONE),
        (2, (0, 1, 2), ErrorCode.FENCED_MEMBER_EPOCH),
        (1, (0, 1), ErrorCode.FENCED_MEMBER_EPOCH),
        (4, (0, 1), ErrorCode.FENCED_MEMBER_EPOCH),
    ],
    ids=["its own", "the last", "an answer was lost", "it owns more", "older", "to come"],
)
def test_epochs(epoch: int, owned: tuple[int, ...] | None, code: ErrorCode) -> None:
    bench = ConsumerBench()
    first, second = bench.member("a"), bench.member("b")
    first.beat()
    first.beat()
    assert (first.epoch, first.numbers, second.epoch) == (3, [0, 1], 3)
    report = None if owned is None else [(topic_id(1), p) for p in owned]
    assert bench.beat("a", epoch, owned=report).code is code


def test_a_fenced_member_comes_back_with_nothing() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    bench.advance(SESSION_MS)
    assert not bench.consumers.members
    assert bench.beat("a", member.epoch).code is ErrorCode.UNKNOWN_MEMBER_ID
    again = bench.member("a")
    assert again.numbers == [0, 1, 2, 3]


def test_a_member_that_rejoins_in_epoch_0_has_given_up_what_it_had() -> None:
    bench = ConsumerBench()
    first, second = bench.member("a"), bench.member("b")
    first.beat()  # told to revoke two
    again = bench.member("a")
    second.beat()
    assert [again.numbers, second.numbers] == [[0, 1], [2, 3]]


def test_heartbeats_keep_a_member_and_silence_ends_it() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    for _ in range(5):
        bench.advance(SESSION_MS - 1)
        member.beat()
    bench.advance(SESSION_MS)
    assert bench.consumers.state is ConsumerGroupState.EMPTY
    bench.run(CheckSession(GROUP, "a"))  # a late timer


def test_a_clock_set_back_does_not_keep_dead_brokers() -> None:
    bench = ConsumerBench()
    bench.member("a")
    bench.now_ms -= 10_000_000
    bench.advance(10_000_000 + SESSION_MS)
    assert not bench.consumers.members


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    bench = ConsumerBench()
    first, second = bench.member("a"), bench.member("b")
    all_along = first.owned
    first.beat()
    for _ in range(REBALANCE_MS // 20_000):
        bench.advance(20_000)
        second.beat()
        if "a" in bench.consumers.members:
            bench.beat("a", first.epoch, owned=all_along)
    assert "a" not in bench.consumers.members
    second.beat()
    assert second.numbers == [0, 1, 2, 3]


def test_members_of_the_range_assignor_and_the_choice_of_most() -> None:
    bench = ConsumerBench()
    bench.topics.put("u", topic_id(2), 3)
    members = [
        bench.member(m, "t", "u", server_assignor=a)
        for m, a in zip("abc", ["range", "range", "uniform"], strict=True)
    ]
    bench.come_to_rest(*members)
    assert bench.consumers.preferred_assignor("uniform") == "range"
    assert [len(m.owned) for m in members] == [3, 2, 2]
    assert members[0].owned == {(topic_id(1), 0), (topic_id(1), 1), (topic_id(2), 0)}


def test_topics_that_come_grow_and_go() -> None:
    bench = ConsumerBench()
    member = bench.member("a", "t", "later")
    assert len(member.owned) == 4
    bench.change_topic("unrelated", 8, 5)
    member.beat()
    assert bench.consumers.epoch == 2
    bench.change_topic("later", 9, 2)
    member.beat()
    assert bench.consumers.epoch == 3
    assert len(member.owned) == 6
    bench.change_topic("later", 9, 3)
    member.beat()
    assert len(member.owned) == 7
    bench.topics.remove("t")
    member.beat()
    assert len(member.owned) == 7, "the group does not know yet"
    bench.change_topic("t", 10, 1)  # another topic of the same name
    bench.come_to_rest(member)
    assert member.owned == {(topic_id(9), p) for p in range(3)} | {(topic_id(10), 0)}


def test_a_new_subscription_is_followed_at_once() -> None:
    bench = ConsumerBench()
    bench.topics.put("u", topic_id(2), 2)
    member = bench.member("a", "t")
    call = bench.beat("a", member.epoch, subscribed_topic_names=["u"])
    assert call.reply.assignment.topic_partitions == []
    member.take(call)
    member.beat()
    assert member.owned == {(topic_id(2), 0), (topic_id(2), 1)}


def test_static_members_keep_their_place() -> None:
    bench = ConsumerBench()
    first = bench.member("a", instance_id="i")
    second = bench.member("b", instance_id="j")
    bench.come_to_rest(first, second)
    epoch, mine = bench.consumers.epoch, first.owned
    assert bench.enter("c", "t", instance_id="i").code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert bench.beat("a", -2, instance_id="i").reply.member_epoch == -2
    assert bench.enter("c", "t", instance_id="i").code is ErrorCode.NONE
    second.beat()
    assert bench.consumers.epoch == epoch, "no new assignment"
    assert {(topic_id(1), p) for p in bench.of("c").assigned[topic_id(1)]} == mine
    assert set(bench.consumers.members) == {"b", "c"}
    assert bench.beat("a", 3, instance_id="i").code is ErrorCode.FENCED_INSTANCE_ID
    assert bench.beat("a", -1, instance_id="i").code is ErrorCode.FENCED_INSTANCE_ID
    assert bench.beat("a", 3, instance_id="x").code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_is_taken_out() -> None:
    bench = ConsumerBench()
    first = bench.member("a", instance_id="i")
    second = bench.member("b")
    bench.come_to_rest(first, second)
    bench.beat("a", -2, instance_id="i")
    bench.advance(SESSION_MS // 2)
    second.beat()
    assert second.numbers == [2, 3], "its partitions wait for it"
    bench.advance(SESSION_MS // 2)
    bench.come_to_rest(second)
    assert second.numbers == [0, 1, 2, 3]
    assert not bench.consumers.static_members


def test_groups_have_a_largest_size() -> None:
    bench = ConsumerBench(GroupSettings(consumer_group_size_max=1))
    member = bench.member("a")
    assert bench.enter("b", "t").code is ErrorCode.GROUP_MAX_SIZE_REACHED
    member.beat()


def test_member_metadata_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    monkeypatch.setattr("skylog.groups.consumer.heartbeat.GROUP_METADATA_BYTES_MAX", 100)
    names = [f"topic-{i}" for i in range(20)]
    assert bench.enter("b", *names).code is ErrorCode.GROUP_MAX_SIZE_REACHED
    changed = bench.beat("a", member.epoch, subscribed_topic_names=names)
    assert changed.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.member("c", "u")
    monkeypatch.setattr("skylog.groups.consumer.heartbeat.GROUP_MEMBER_METADATA_BYTES_MAX", 8)
    assert bench.enter("d", "far too long").code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_that_is_gone_leaves_nothing() -> None:
    bench = ConsumerBench()
    bench.member("a", "t", "u")
    assert bench.machine._metadata_bytes == 2
    bench.beat("a", -1)
    assert bench.machine._metadata_bytes == 0
    assert not bench.machine._sessions
    assert not bench.timers.keys() - {"expiry"}


def test_the_log_is_all_a_new_leader_needs() -> None:
    bench = ConsumerBench()
    first, second = bench.member("a", instance_id="i"), bench.member("b", rack_id="r")
    first.beat()
    other = bench.reload()
    before = replace(bench.consumers, metadata_checked=False)
    assert other.consumers == before
    first.bench = second.bench = other
    first.beat()
    second.beat()
    assert [first.numbers, second.numbers] == [[0, 1], [2, 3]]
    other.advance(SESSION_MS)
    assert not other.consumers.members, "sessions began anew"


def test_a_new_leader_times_those_who_have_to_revoke() -> None:
    bench = ConsumerBench(config=ConsumerConfig(10 * REBALANCE_MS, 1_000, 0))
    first, _ = bench.member("a"), bench.member("b")
    bench.beat("a", first.epoch)
    other = bench.reload()
    other.advance(REBALANCE_MS)
    assert set(other.consumers.members) == {"b"}


def test_an_unknown_state_of_a_later_release() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    bench.consumers.members["a"] = replace(bench.of("a"), state=MemberState.of(99))
    assert bench.of("a").state is MemberState.UNKNOWN
    refused = bench.beat("a", member.epoch, owned=member.owned)
    assert refused.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("a", member.epoch, owned=()).code is ErrorCode.NONE
    assert bench.of("a").state is MemberState.STABLE


@pytest.mark.parametrize(
    ("values", "version", "code"),
    [
        ({"member_id": "", "member_epoch": 0}, 0, ErrorCode.NONE),
        ({"member_id": "", "member_epoch": 0}, 1, ErrorCode.INVALID_REQUEST),
        ({"member_id": "", "member_epoch": 1}, 0, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "range"}, 1, ErrorCode.NONE),
        ({"server_assignor": "best"}, 1, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"topic_partitions": None}, 1, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, 1, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "a"}, 1, ErrorCode.NONE),
        ({"rebalance_timeout_ms": -1}, 1, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, 1, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2, "instance_id": "i"}, 1, ErrorCode.NONE),
        ({"member_epoch": -3}, 1, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, 1, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_no_group_could_make_sense_of(
    values: dict[str, Any], version: int, code: ErrorCode
) -> None:
    full = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    message = ConsumerGroupHeartbeatRequest(**{**full, **values})
    found = ErrorCode.NONE
    try:
        check_heartbeat(message, version, ("uniform", "range"))
    except KafkaError as error:
        found = error.code
    assert found is code


def test_unknown_groups() -> None:
    bench = ConsumerBench()
    for epoch in (1, -1):
        assert bench.beat("a", epoch).code is ErrorCode.GROUP_ID_NOT_FOUND
    bench.commit(offset=1)
    for epoch in (1, -1):
        assert bench.beat("a", epoch).code is ErrorCode.GROUP_ID_NOT_FOUND
    bench.member("a")
    assert bench.machine.offsets_of(GROUP), "offsets outlast the change"
