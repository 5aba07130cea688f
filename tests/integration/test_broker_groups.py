"""Consumer groups as a client sees them, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID
from skylog.testing import Broker
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from skylog.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.integration.broker_client import Client


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker, Client(broker.bootstrap) as client:
        client.create("t")
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]))
        yield broker


def join(client: Client, group: str, member: str = "") -> Any:
    protocol = JoinGroupRequestProtocol("range", b"subscription")
    request = JoinGroupRequest(group, 30_000, 30_000, member, None, "consumer", [protocol])
    return client.ask(request)


def alone_in(client: Client, group: str) -> Any:
    """Join a group as its only member; returns the response."""
    asked = join(client, group)
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = join(client, group, asked.member_id)
    assert joined.error_code == 0
    return joined


def sync(client: Client, group: str, joined: Any) -> Any:
    mine = SyncGroupRequestAssignment(joined.member_id, b"everything")
    return client.ask(
        SyncGroupRequest(
            group, joined.generation_id, joined.member_id, None, "consumer", "range", [mine]
        )
    )


def commit(
    client: Client,
    group: str,
    offset: int = 5,
    *,
    metadata: str | None = "",
    member: str = "",
    generation: int = -1,
    topic: str = "t",
    version: int = 9,
) -> int:
    part = OffsetCommitRequestPartition(0, offset, -1, metadata)
    topics = [OffsetCommitRequestTopic(topic, ZERO_UUID, [part])]
    request = OffsetCommitRequest(group, generation, member, None, -1, topics)
    code: int = client.ask(request, version).topics[0].partitions[0].error_code
    return code


def committed(client: Client, group: str) -> tuple[int, str]:
    topics = [OffsetFetchRequestTopics("t", ZERO_UUID, [0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, None, -1, topics)])
    answer = client.ask(request, 9).groups[0]
    assert answer.error_code == 0
    found = answer.topics[0].partitions[0]
    assert found.error_code == 0
    return found.committed_offset, found.metadata


def test_the_coordinator_is_found(broker: Broker, client: Client) -> None:
    answer = client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "b"]))
    host, _, port = broker.bootstrap.rpartition(":")
    found = [(c.key, c.node_id, c.host, c.port, c.error_code) for c in answer.coordinators]
    assert found == [(key, 1, host, int(port), 0) for key in ("a", "b")]


def test_an_unknown_group_has_no_offsets(client: Client) -> None:
    assert committed(client, "never-heard-of") == (-1, "")


def test_offsets_without_members(client: Client) -> None:
    assert commit(client, "simple", 7, metadata="note") == 0
    assert committed(client, "simple") == (7, "note")


def test_unknown_members(client: Client) -> None:
    who: dict[str, Any] = {"member": "who", "generation": 3}
    assert commit(client, "stranger", version=8, **who) == ErrorCode.ILLEGAL_GENERATION
    assert commit(client, "stranger", version=9, **who) == ErrorCode.GROUP_ID_NOT_FOUND
    beat = client.ask(HeartbeatRequest("stranger", 3, "who"))
    assert beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_joins_syncs_commits_and_leaves(client: Client) -> None:
    joined = alone_in(client, "life")
    assert joined.leader == joined.member_id
    # It is alive before it has synced.
    beat = HeartbeatRequest("life", joined.generation_id, joined.member_id)
    assert client.ask(beat).error_code == 0
    assert bytes(sync(client, "life", joined).assignment) == b"everything"
    assert client.ask(beat).error_code == 0
    assert commit(client, "life") == ErrorCode.UNKNOWN_MEMBER_ID  # no member
    member, generation = joined.member_id, joined.generation_id
    assert commit(client, "life", 9, member=member, generation=generation) == 0
    late = commit(client, "life", 9, member=member, generation=generation + 1)
    assert late == ErrorCode.ILLEGAL_GENERATION
    assert committed(client, "life") == (9, "")
    leave = client.ask(LeaveGroupRequest("life", members=[MemberIdentity(member)]))
    assert (leave.error_code, leave.members[0].error_code) == (0, 0)
    assert client.ask(beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_metadata_of_a_commit_has_a_limit(client: Client) -> None:
    assert commit(client, "notes", metadata="x" * 4096) == 0
    assert commit(client, "notes", metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(client, "notes") == (5, "x" * 4096)
    assert commit(client, "notes", metadata="nul\0") == 0
    assert committed(client, "notes") == (5, "nul\0")


def test_commits_to_topics_that_do_not_exist(client: Client) -> None:
    code = commit(client, "lost", topic="nobody's")
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_outlive_the_broker(tmp_path: Any) -> None:
    with Broker(directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        client.create("t")
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        assert commit(client, "g", 41) == 0
    with Broker(directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert committed(client, "g") == (41, "")


def test_a_group_named_many_times_is_described_once(client: Client) -> None:
    joined = alone_in(client, "described")
    sync(client, "described", joined)
    [group] = client.ask(DescribeGroupsRequest(["described"] * 100)).groups
    assert (group.error_code, len(group.members)) == (0, 1)
    asked = [OffsetFetchRequestGroup("described", topics=None)] * 3
    found = client.ask(OffsetFetchRequest(groups=asked)).groups
    invalid = ErrorCode.INVALID_REQUEST
    assert [group.error_code for group in found] == [0, invalid, invalid]
    topic = TopicRequest("t", [0, 0, 0])
    [producers] = client.ask(DescribeProducersRequest([topic, topic])).topics
    assert [partition.partition_index for partition in producers.partitions] == [0]
