"""Live groups change their protocol, and members of both kinds share a group meanwhile."""

from __future__ import annotations

import pytest

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.embedded import decode_assignment, encode_assignment
from skylog.groups.consumer.member import MemberState
from skylog.groups.members import ClassicGroup, GroupState
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode
from skylog.wire.codec import encode
from skylog.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from skylog.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from skylog.wire.messages.consumer_protocol_subscription import (
    TopicPartition as OwnedPartition,
)
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.join_group_response import JoinGroupResponse
from tests.unit.groups.consumer_support import REBALANCE_MS, ConsumerBench, topic_id
from tests.unit.groups.support import GROUP, INITIAL_DELAY_MS, SESSION_MS, Call, subscription


def owning(*partitions: int) -> bytes:
    """The subscription of a cooperative member that owns these partitions of ``t``."""
    owned = [OwnedPartition("t", list(partitions))] if partitions else []
    return b"\0\1" + encode(ConsumerProtocolSubscription(["t"], None, owned), 1)


def assigned(*partitions: int) -> bytes:
    message = ConsumerProtocolAssignment([TopicPartition("t", list(partitions))])
    return b"\0\0" + encode(message, 0)


def classic_group(bench: ConsumerBench, *parts: tuple[int, ...]) -> list[str]:
    """A stable classic group whose members own these partitions."""
    calls = [bench.new_member(metadata=subscription("t")) for _ in parts]
    bench.advance(INITIAL_DELAY_MS * 2)
    members = [member for member, _ in calls]
    leader = bench.group.leader
    shares = {m: assigned(*part) for m, part in zip(members, parts, strict=True)}
    for member in sorted(members, key=lambda m: m != leader):
        bench.sync(member, bench.group.generation, **(shares if member == leader else {}))
    assert bench.group.state is GroupState.STABLE
    return members


def share(call: Call) -> list[int]:
    assert call.code is ErrorCode.NONE
    topics = decode_assignment(call.reply.assignment).assigned_partitions
    return sorted(p for topic in topics for p in topic.partitions)


def rejoin(bench: ConsumerBench, member: str, *owned: int) -> JoinGroupResponse:
    found = bench.join(member, metadata=owning(*owned))
    assert found.code is ErrorCode.NONE
    assert isinstance(found.reply, JoinGroupResponse)
    return found.reply


def test_up_and_down_again() -> None:
    bench = ConsumerBench()
    old_a, old_b = classic_group(bench, (0, 1), (2, 3))
    bench.commit(old_a, 1, offset=7)
    new = bench.member("new")
    assert new.owned == frozenset(), "others have everything"
    assert bench.consumers.classic_count == 2
    assert bench.consumers.target_epoch == 2
    # Members of the classic protocol are told to join, revoke, and join again.
    for member, owned, kept in ((old_a, (0, 1), [0, 1]), (old_b, (2, 3), [2])):
        assert bench.heartbeat(member, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
        first = rejoin(bench, member, *owned)
        assert share(bench.sync(member, first.generation_id)) == kept
    assert bench.of(old_b).state is MemberState.UNREVOKED_PARTITIONS
    assert bench.heartbeat(old_b, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
    new.beat()
    assert new.numbers == [], "it may still own it"
    again = rejoin(bench, old_b, 2)
    assert again.generation_id == 2
    assert share(bench.sync(old_b, 2)) == [2]
    assert bench.heartbeat(old_b, 2).code is ErrorCode.NONE
    new.beat()
    assert new.numbers == [3]
    assert bench.machine.offsets_of(GROUP)["topic"][0].offset == 7
    # The last member of the consumer protocol leaves: the group is classic again.
    bench.beat("new", -1)
    assert bench.group.state is GroupState.PREPARING_REBALANCE
    assert set(bench.group.members) == {old_a, old_b}
    assert bench.heartbeat(old_a, bench.group.generation).code is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join(old_a, metadata=owning(0, 1))
    bench.join(old_b, metadata=owning(2))
    assert bench.group.state is GroupState.COMPLETING_REBALANCE
    other = bench.reload()
    assert other.group.state is GroupState.STABLE, "as it was when it became classic"
    assert bench.machine._metadata_bytes == bench.group.metadata_bytes


def test_members_that_wait_are_told_to_join_again() -> None:
    bench = ConsumerBench()
    classic_group(bench, (0, 1, 2, 3))
    _, waiting = bench.new_member(metadata=subscription("t"))
    assert not waiting.answered
    bench.member("new")
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(bench.machine.group(GROUP), ConsumerGroup)
    assert not [key for key in bench.timers if key[0] == "join" and len(key) == 2]


def test_the_log_tells_of_a_change_under_way() -> None:
    bench = ConsumerBench()
    [old] = classic_group(bench, (0, 1, 2, 3))
    bench.member("new")
    other = bench.reload()
    assert set(other.consumers.members) == {old, "new"}
    assert other.of(old).classic == bench.of(old).classic
    assert other.heartbeat(old, 1).code is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("policy", "up", "down"),
    [
        ("disabled", False, False),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("bidirectional", True, True),
    ],
)
def test_policies(policy: str, up: bool, down: bool) -> None:
    bench = ConsumerBench(GroupSettings(migration_policy=policy))
    classic_group(bench, (0, 1, 2, 3))
    code = bench.enter("new", "t").code
    assert code is (ErrorCode.NONE if up else ErrorCode.GROUP_ID_NOT_FOUND)

    other = ConsumerBench(GroupSettings(migration_policy=policy))
    other.member("new")
    joined = other.join("old", metadata=owning())
    if policy == "disabled":
        assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    assert joined.code is ErrorCode.NONE
    other.beat("new", -1)
    assert isinstance(other.machine.group(GROUP), ClassicGroup) is down


def test_what_cannot_become_a_consumer_group() -> None:
    bench = ConsumerBench()
    bench.stable(1, "range", protocol_type="connect")
    assert bench.enter("new", "t").code is ErrorCode.GROUP_ID_NOT_FOUND
    crowded = ConsumerBench(GroupSettings(consumer_group_size_max=1))
    classic_group(crowded, (0,), (1,))
    assert crowded.enter("new", "t").code is ErrorCode.GROUP_ID_NOT_FOUND
    for assignment in (b"\0\0\xff", b"\0\0" + encode(ConsumerProtocolAssignment([], b"mine"), 0)):
        odd = ConsumerBench()
        [member], generation = odd.stable(1), odd.group.generation
        odd.join(member)  # requested by the leader
        odd.sync(member, generation + 1, **{member: assignment})
        assert odd.group.members[member].assignment == assignment
        assert odd.enter("new", "t").code is ErrorCode.GROUP_ID_NOT_FOUND
        assert odd.group.state is GroupState.STABLE, "it goes on as it was"


def test_classic_members_of_a_consumer_group() -> None:
    bench = ConsumerBench()
    bench.member("new")
    asked = bench.join("", metadata=owning())
    assert asked.code is ErrorCode.MEMBER_ID_REQUIRED
    old = asked.reply.member_id
    joined = rejoin(bench, old)
    assert (joined.leader, joined.members, joined.protocol_name) == ("", [], "range")
    assert share(bench.sync(old, joined.generation_id)) == []
    assert bench.sync(old, 99).code is ErrorCode.ILLEGAL_GENERATION
    assert bench.sync("new", 3).code is ErrorCode.UNKNOWN_MEMBER_ID
    odd = bench.sync(old, joined.generation_id, protocol_name="sticky")
    assert odd.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.heartbeat("new", 2).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(old, 99).code is ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat(old, joined.generation_id).code is ErrorCode.NONE, "others own its share"
    other = bench.join("x", "sticky", metadata=owning())
    assert other.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    strange = bench.join("x", protocol_type="connect")
    assert strange.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join("x", metadata=b"\0").error is ErrorCode.UNKNOWN_SERVER_ERROR
    left = bench.leave(old, "nobody").reply
    assert [m.error_code for m in left.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_classic_member_that_does_not_join_again_is_out() -> None:
    bench = ConsumerBench()
    [old] = classic_group(bench, (0, 1, 2, 3))
    new = bench.member("new")
    for _ in range(REBALANCE_MS // 5_000 - 1):
        assert bench.heartbeat(old, 1).code is ErrorCode.REBALANCE_IN_PROGRESS
        bench.advance(5_000)
        new.beat()
    bench.heartbeat(old, 1)
    bench.advance(5_000)
    assert set(bench.consumers.members) == {"new"}
    new.beat()
    assert new.numbers == [0, 1, 2, 3]


def test_a_classic_member_that_does_not_sync_is_out() -> None:
    bench = ConsumerBench()
    new = bench.member("new")
    joined = rejoin(bench, "old")
    for _ in range(REBALANCE_MS // 5_000):
        if "old" in bench.consumers.members:
            bench.heartbeat("old", joined.generation_id)
        bench.advance(5_000)
        new.beat()
    assert set(bench.consumers.members) == {"new"}


def test_a_classic_member_that_is_silent_is_out() -> None:
    bench = ConsumerBench()
    bench.member("new")
    rejoin(bench, "old")
    bench.advance(SESSION_MS)
    assert set(bench.consumers.members) == {"new"}
    assert not bench.consumers.waits


def test_a_static_member_takes_its_group_down_with_it() -> None:
    bench = ConsumerBench()
    bench.member("a", instance_id="i")
    bench.beat("a", -2, instance_id="i")
    joined = bench.join("", instance_id="i", metadata=owning())
    assert joined.code is ErrorCode.NONE
    group = bench.group
    assert (group.state, set(group.members)) == (GroupState.STABLE, {joined.reply.member_id})
    member = group.members[joined.reply.member_id]
    assert member.assignment == encode_assignment(
        {topic_id(1): frozenset(range(4))}, owning(), bench.topics
    )
    assert bench.reload().group.members == group.members


def test_an_empty_consumer_group_gives_way_to_a_classic_one() -> None:
    bench = ConsumerBench()
    bench.member("a")
    bench.beat("a", -1)
    assert bench.join("unknown").code is ErrorCode.UNKNOWN_MEMBER_ID
    bench.stable(1)
    assert isinstance(bench.reload().machine.group(GROUP), ClassicGroup)


def test_a_consumer_group_is_no_classic_one() -> None:
    bench = ConsumerBench()
    bench.member("a")
    [found] = bench.ask(DescribeGroupsRequest([GROUP]), 6).reply.groups
    assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert found.error_message == "Group group is not a classic group."
