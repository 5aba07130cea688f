"""OffsetCommit, OffsetFetch, OffsetDelete, and how offsets expire."""

from __future__ import annotations

import pytest

from skylog.groups.members import GroupState
from skylog.groups.requests import ExpireOffsets, TopicsDeleted
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import GROUP_PASS_GROUPS_MAX
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.unit.groups.support import GROUP, INITIAL_DELAY_MS, Bench, Call, subscription

RETENTION_MS = GroupSettings().offsets_retention_ms
CHECK_MS = GroupSettings().offsets_check_interval_ms
TOPIC_ID = Uuid(b"t" * 16)


def fetched(bench: Bench, topic: str = "topic", topic_id: Uuid | None = None) -> int:
    """The committed offset of a topic's partition 0."""
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    if topic_id is not None:
        asked.topic_id = topic_id
    reply = bench.ask(OffsetFetchRequestGroup(GROUP, topics=[asked]), 9).reply
    return int(reply.topics[0].partitions[0].committed_offset)


def committed(call: Call) -> ErrorCode:
    return ErrorCode(call.reply.topics[0].partitions[0].error_code)


# OffsetCommit


def test_a_consumer_without_a_group_commits() -> None:
    bench = Bench()
    assert committed(bench.commit(offset=7)) is ErrorCode.NONE
    assert fetched(bench) == 7
    assert (bench.group.state, bench.group.protocol_type) == (GroupState.EMPTY, None)
    assert fetched(bench.reload()) == 7


@pytest.mark.parametrize(
    ("version", "code"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_member_commits_to_a_group_that_does_not_exist(version: int, code: ErrorCode) -> None:
    assert Bench().commit("member", 1, version=version).code is code


def test_only_members_commit_to_a_group_with_members() -> None:
    bench = Bench()
    [member] = bench.stable()
    assert bench.commit().code is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit(member).code is ErrorCode.ILLEGAL_GENERATION
    assert committed(bench.commit(member, 1)) is ErrorCode.NONE


def test_members_commit_while_the_group_prepares_to_rebalance() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.new_member()
    assert bench.group.state is GroupState.PREPARING_REBALANCE
    assert committed(bench.commit(member, 1)) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (None, ErrorCode.NONE),
        ("m" * 4096, ErrorCode.NONE),
        ("m" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\N{GRINNING FACE}" * 2048, ErrorCode.NONE),
        ("\N{GRINNING FACE}" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_has_a_length_in_utf16(metadata: str | None, code: ErrorCode) -> None:
    bench = Bench()
    assert committed(bench.commit(metadata=metadata)) is code
    assert (fetched(bench) == 42) is (code is ErrorCode.NONE)


def test_what_is_committed_comes_back_whole() -> None:
    bench = Bench()
    partition = OffsetCommitRequestPartition(3, 99, 5, "note\0")
    topic = OffsetCommitRequestTopic("topic", TOPIC_ID, [partition])
    bench.ask(OffsetCommitRequest(GROUP, topics=[topic]), 10)
    for machine in (bench, bench.reload()):
        reply = machine.ask(OffsetFetchRequestGroup(GROUP, topics=None), 10).reply
        [found] = reply.topics[0].partitions
        assert (found.partition_index, found.committed_offset) == (3, 99)
        assert (found.committed_leader_epoch, found.metadata) == (5, "note\0")


# OffsetFetch


def test_unknown_groups_topics_and_partitions_have_no_offset() -> None:
    bench = Bench()
    assert fetched(bench) == -1
    assert bench.ask(OffsetFetchRequestGroup(GROUP, topics=None), 9).reply.topics == []
    bench.commit()
    assert fetched(bench, "other") == -1


def test_an_offset_of_an_older_topic_of_the_same_name_is_not_shown() -> None:
    bench = Bench()
    topic = OffsetCommitRequestTopic("topic", TOPIC_ID, [OffsetCommitRequestPartition(0, 42)])
    bench.ask(OffsetCommitRequest(GROUP, topics=[topic]), 10)
    assert fetched(bench, topic_id=TOPIC_ID) == 42
    assert fetched(bench) == 42
    assert fetched(bench, topic_id=Uuid(b"n" * 16)) == -1


# OffsetDelete


def delete(bench: Bench, *topics: str) -> Call:
    asked = [OffsetDeleteRequestTopic(t, [OffsetDeleteRequestPartition(0)]) for t in topics]
    return bench.ask(OffsetDeleteRequest(GROUP, asked), 0)


def test_offsets_of_topics_without_subscribers_are_deleted() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.commit(member, 1)
    bench.commit(member, 1, topic="other")
    reply = delete(bench, "topic", "other", "third").reply
    codes = [topic.partitions[0].error_code for topic in reply.topics]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    for machine in (bench, bench.reload()):
        assert (fetched(machine), fetched(machine, "other")) == (42, -1)


def test_offset_delete_refusals() -> None:
    bench = Bench()
    assert delete(bench, "topic").code is ErrorCode.GROUP_ID_NOT_FOUND
    member, _ = bench.new_member(protocol_type="connect")
    bench.advance(INITIAL_DELAY_MS)
    assert delete(bench, "topic").code is ErrorCode.NON_EMPTY_GROUP
    bench.leave(member)
    assert delete(bench, "topic").code is ErrorCode.NONE


def test_a_group_whose_subscriptions_cannot_be_read_counts_as_subscribed_to_all() -> None:
    bench = Bench()
    bench.stable(metadata=b"\0")
    reply = delete(bench, "topic").reply
    assert reply.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


# Expiry


def test_a_lone_consumers_offsets_expire_after_their_last_commit() -> None:
    bench = Bench()
    bench.commit()
    bench.advance(RETENTION_MS // 2)
    bench.commit(topic="later")
    bench.advance(RETENTION_MS // 2)
    assert (fetched(bench), fetched(bench, "later")) == (-1, 42)
    bench.advance(RETENTION_MS // 2)
    assert bench.machine.group(GROUP) is None
    assert bench.reload().machine.group(GROUP) is None


def test_a_groups_offsets_expire_after_its_last_member_has_left() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.commit(member, 1)
    for _ in range(RETENTION_MS // 5_000_000 + 1):  # members that stay keep their offsets
        bench.heartbeat(member, 1)
        bench.now_ms += 5_000_000
    bench.heartbeat(member, 1)
    bench.run(ExpireOffsets())
    assert fetched(bench) == 42
    bench.leave(member)
    bench.advance(RETENTION_MS - 1)
    assert fetched(bench) == 42
    bench.advance(CHECK_MS)
    assert bench.machine.group(GROUP) is None


def test_offsets_of_topics_that_a_stable_group_gave_up_expire() -> None:
    bench = Bench()
    [member] = bench.stable(metadata=subscription("topic"))
    bench.commit(member, 1)
    bench.commit(member, 1, topic="old")
    bench.now_ms += RETENTION_MS
    bench.heartbeat(member, 1)
    bench.run(ExpireOffsets())
    assert (fetched(bench), fetched(bench, "old")) == (42, -1)


def test_an_unstable_groups_offsets_do_not_expire() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.commit(member, 1, topic="old")
    bench.new_member()
    bench.now_ms += RETENTION_MS
    bench.run(ExpireOffsets())
    assert fetched(bench, "old") == 42


def test_old_versions_choose_their_own_retention() -> None:
    bench = Bench()
    bench.commit(retention_ms=1_000, version=2)
    bench.commit(retention_ms=2**63 - 1, version=2, topic="long")
    for machine in (bench, bench.reload()):
        machine.now_ms += 999
        machine.run(ExpireOffsets())
        assert fetched(machine) == 42
        machine.now_ms += 1
        machine.run(ExpireOffsets())
        assert (fetched(machine), fetched(machine, "long")) == (-1, 42)
        machine.now_ms -= 1_000


def test_an_empty_group_without_offsets_goes_with_the_next_pass() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.leave(member)
    bench.advance(CHECK_MS)
    assert bench.machine.group(GROUP) is None


@pytest.mark.parametrize("size", [1, 2])
def test_a_group_with_members_outlasts_its_offsets(size: int) -> None:
    bench = Bench()
    members = bench.stable(size)
    if size > 1:
        bench.join(members[0])
    bench.now_ms += RETENTION_MS
    bench.run(ExpireOffsets())
    assert set(bench.group.members) == set(members)


def test_a_pass_over_many_groups_goes_on_in_parts() -> None:
    bench = Bench()
    for number in range(GROUP_PASS_GROUPS_MAX + 1):
        bench.machine.apply(*_commit_record(f"group-{number}", bench.now_ms))
    bench.now_ms += RETENTION_MS
    bench.run(ExpireOffsets())
    assert len(list(bench.machine.snapshot())) == 1
    assert bench.timers["expiry"][0] == bench.now_ms
    bench.run(bench.timers.pop("expiry")[1])
    assert list(bench.machine.snapshot()) == []
    assert bench.timers["expiry"] == (bench.now_ms + CHECK_MS, ExpireOffsets())


@pytest.mark.parametrize("group_id", ["group", "ü" * 200])
def test_a_pass_over_a_large_group_goes_on_in_parts(
    group_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skylog.groups.passes.GROUP_PASS_RECORDS_BYTES_MAX", 1000)
    bench = Bench()
    for number in range(30):
        bench.commit(group_id=group_id, topic=f"topic-{number}")
    bench.now_ms += RETENTION_MS
    bench.run(ExpireOffsets())
    left = len(list(bench.machine.snapshot()))
    assert 0 < left < 30
    parts = 1
    while bench.timers["expiry"][0] == bench.now_ms:
        parts += 1
        bench.run(bench.timers.pop("expiry")[1])
    assert list(bench.machine.snapshot()) == []
    assert bench.machine.group(group_id) is None
    assert parts > 1


def _commit_record(group_id: str, now_ms: int) -> tuple[object, int]:
    bench = Bench(now_ms=now_ms)
    bench.commit(group_id=group_id)
    [record] = bench.machine.snapshot()
    return record, 0


# Deleted topics


def test_the_offsets_of_deleted_topics_are_forgotten() -> None:
    bench = Bench()
    for name, topic_id in (("topic", TOPIC_ID), ("again", Uuid(b"n" * 16))):
        topic = OffsetCommitRequestTopic(name, topic_id, [OffsetCommitRequestPartition(0, 42)])
        bench.ask(OffsetCommitRequest(GROUP, topics=[topic]), 10)
    bench.commit(topic="early")  # from when commits had no topic ids
    bench.run(TopicsDeleted((("topic", TOPIC_ID), ("again", TOPIC_ID), ("early", TOPIC_ID))))
    for machine in (bench, bench.reload()):
        found = [fetched(machine, name) for name in ("topic", "again", "early")]
        assert found == [-1, 42, -1]
