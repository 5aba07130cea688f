"""Offsets of consumer groups: who may commit, read and delete them, and when they expire."""

from __future__ import annotations

import pytest

from skylog.groups.consumer.consumer_group import ConsumerGroupState
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.unit.groups.consumer_support import ConsumerBench, topic_id
from tests.unit.groups.support import GROUP, Call, commit_request


def commit(
    bench: ConsumerBench, member: str, epoch: int, number: int = 1, version: int = 9
) -> ErrorCode:
    """Commit partition 0 of a topic."""
    message = commit_request(member, epoch, topic="t")
    message.topics[0].topic_id = topic_id(number)
    return bench.ask(message, version).error or ErrorCode.NONE


def fetch(bench: ConsumerBench, member: str | None, epoch: int) -> Call:
    topics = [OffsetFetchRequestTopics("t", Uuid(bytes(16)), [0])]
    return bench.ask(OffsetFetchRequestGroup(GROUP, member, epoch, topics), 9)


def delete(bench: ConsumerBench, topic: str) -> int:
    topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
    reply = bench.ask(OffsetDeleteRequest(GROUP, topics), 0).reply
    code: int = reply.topics[0].partitions[0].error_code
    return code


def test_epochs_of_commits() -> None:
    bench = ConsumerBench()
    bench.topics.put("u", topic_id(2), 1)
    member = bench.member("a", "t")
    assert commit(bench, "a", member.epoch) is ErrorCode.NONE
    assert commit(bench, "a", member.epoch, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(bench, "z", member.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, "a", member.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    member.beat(subscribed_topic_names=["t", "u"])
    before = member.epoch - 1
    assert commit(bench, "a", before) is ErrorCode.NONE, "it has had that partition since then"
    assert commit(bench, "a", before, 2) is ErrorCode.STALE_MEMBER_EPOCH, "and this one not"
    assert commit(bench, "a", before, 3) is ErrorCode.STALE_MEMBER_EPOCH, "nor that"
    assert commit(bench, "a", before - 1) is ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_given_up_may_be_committed_until_it_is() -> None:
    bench = ConsumerBench()
    first = bench.member("a")
    bench.member("b")
    bench.beat("a", first.epoch)
    message = commit_request("a", first.epoch)
    message.topics[0].topic_id, message.topics[0].partitions[0].partition_index = topic_id(1), 3
    assert bench.ask(message, 9).error is None
    bench.beat("a", first.epoch, owned=[(topic_id(1), 0), (topic_id(1), 1)])
    assert bench.of("a").epoch == first.epoch + 1
    assert bench.ask(message, 9).error is ErrorCode.STALE_MEMBER_EPOCH


def test_epochs_of_fetches() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    commit(bench, "a", member.epoch)
    assert fetch(bench, "a", member.epoch).reply.topics[0].partitions[0].committed_offset == 42
    assert fetch(bench, None, -1).error is None
    assert fetch(bench, "a", member.epoch - 1).error is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(bench, "z", member.epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(bench, None, member.epoch).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_classic_members_hear_of_generations() -> None:
    bench = ConsumerBench()
    bench.member("a")
    joined = bench.join("old").reply
    assert commit(bench, "old", joined.generation_id, version=8) is ErrorCode.NONE
    assert commit(bench, "old", joined.generation_id + 1, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert fetch(bench, "old", 99).error is ErrorCode.ILLEGAL_GENERATION


def test_offsets_of_subscribed_topics_stay() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    commit(bench, "a", member.epoch)
    assert delete(bench, "t") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete(bench, "other") == ErrorCode.NONE
    bench.beat("a", -1)
    assert delete(bench, "t") == ErrorCode.NONE
    assert not bench.machine.offsets_of(GROUP)


def test_groups_are_deleted_when_empty() -> None:
    bench = ConsumerBench()
    member = bench.member("a")
    commit(bench, "a", member.epoch)
    [result] = bench.ask(DeleteGroupsRequest([GROUP]), 2).reply.results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    bench.beat("a", -1)
    [result] = bench.ask(DeleteGroupsRequest([GROUP]), 2).reply.results
    assert result.error_code == ErrorCode.NONE
    assert bench.machine.group(GROUP) is None
    assert bench.reload().machine.group(GROUP) is None
    assert not bench.machine.offsets_of(GROUP)


def test_offsets_expire_and_the_group_with_them() -> None:
    settings = GroupSettings(offsets_retention_ms=1_000_000, offsets_check_interval_ms=100_000)
    bench = ConsumerBench(settings)
    member = bench.member("a")
    commit(bench, "a", member.epoch)
    bench.topics.put("u", topic_id(2), 1)
    member.beat(subscribed_topic_names=["u"])
    member.beat()
    for _ in range(8):
        bench.advance(40_000)
        member.beat()
    assert bench.machine.offsets_of(GROUP)
    for _ in range(25):
        bench.advance(40_000)
        member.beat()
    assert not bench.machine.offsets_of(GROUP), "no member subscribes to that topic any more"
    assert bench.consumers.state is ConsumerGroupState.STABLE
    bench.beat("a", -1)
    bench.advance(100_000)
    assert bench.machine.group(GROUP) is None


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], ["group", "old"]),
        ([], ["Consumer"], ["group"]),
        ([], ["classic"], ["old"]),
        ([], ["share"], []),
        (["stable"], [], ["group"]),
        (["Empty"], ["consumer"], []),
        ([" empty "], [], ["old"]),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: list[str], types: list[str], expected: list[str]
) -> None:
    bench = ConsumerBench()
    bench.member("a")
    bench.commit(group_id="old")
    found = bench.ask(ListGroupsRequest(states, types), 5).reply.groups
    assert sorted(group.group_id for group in found) == expected
