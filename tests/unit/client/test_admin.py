"""Administration: which broker is asked, what is sent, and how errors are returned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skylog.client.admin import Admin
from skylog.client.admin.configs import (
    Change,
    ConfigEntry,
    ConfigResource,
    ConfigType,
)
from skylog.client.admin.security import ScramUser
from skylog.client.admin.topics import CreatedTopic, NewTopic
from skylog.client.assignor import encode_assignment
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import LATEST, CommittedOffset, OffsetAtTime
from skylog.kernel.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from skylog.kernel.config import Operation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.secret import Secret
from skylog.security.acls import AclBinding, AclFilter
from skylog.security.scram import ScramMechanism
from skylog.wire.apis import ApiKey
from skylog.wire.messages import alter_client_quotas_response as altered_quotas
from skylog.wire.messages import consumer_group_describe_response as consumer_group
from skylog.wire.messages import create_acls_response as created_acls
from skylog.wire.messages import create_partitions_response as grown
from skylog.wire.messages import create_topics_response as created
from skylog.wire.messages import delete_acls_response as deleted_acls
from skylog.wire.messages import delete_groups_response as deleted_groups
from skylog.wire.messages import delete_records_response as deleted_records
from skylog.wire.messages import delete_topics_response as deleted
from skylog.wire.messages import describe_acls_response as described_acls
from skylog.wire.messages import describe_client_quotas_response as quotas
from skylog.wire.messages import describe_configs_response as configs
from skylog.wire.messages import describe_groups_response as groups
from skylog.wire.messages import describe_log_dirs_response as log_dirs
from skylog.wire.messages import incremental_alter_configs_response as altered
from skylog.wire.messages import list_groups_response as listed
from skylog.wire.messages import list_offsets_response as offsets
from skylog.wire.messages import offset_commit_response as commits
from skylog.wire.messages import offset_delete_response as deleted_offsets
from skylog.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from skylog.wire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from skylog.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from tests.unit.client.support import FakeBroker, cluster_of, running

ID = Uuid(b"x" * 16)
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ACL = AclBinding(
    ResourceType.TOPIC,
    "t",
    PatternType.PREFIXED,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


@asynccontextmanager
async def admin_of(*brokers: FakeBroker) -> AsyncIterator[Admin]:
    async with running(*brokers), cluster_of(brokers[0]) as cluster:
        yield Admin(cluster)


def code(outcome: Any) -> ErrorCode:
    assert isinstance(outcome, KafkaError)
    return outcome.code


async def test_topics_are_created_each_with_its_own_outcome() -> None:
    broker = FakeBroker()
    results = [
        created.CreatableTopicResult("t", ID, 0, None, 0, 3, 1),
        created.CreatableTopicResult("u", error_code=36, error_message="Topic 'u' exists."),
    ]
    broker.on(ApiKey.CREATE_TOPICS, created.CreateTopicsResponse(topics=results))
    async with admin_of(broker) as admin:
        new = [NewTopic("t", 3, 1, configs={"a": "b"}), NewTopic("u", assignments={0: [1, 2]})]
        found = await admin.topics.create(new, validate_only=True)
    assert found["t"] == CreatedTopic("t", ID, 3, 1)
    assert code(found["u"]) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert str(found["u"]) == "TOPIC_ALREADY_EXISTS: Topic 'u' exists."
    request = broker.requests(ApiKey.CREATE_TOPICS)[0]
    assert request.validate_only
    first, second = request.topics
    assert (first.num_partitions, first.replication_factor) == (3, 1)
    assert [(c.name, c.value) for c in first.configs] == [("a", "b")]
    assert (second.num_partitions, second.replication_factor) == (-1, -1)
    assert [(a.partition_index, a.broker_ids) for a in second.assignments] == [(0, [1, 2])]


async def test_another_controller_is_asked_while_one_says_it_is_not() -> None:
    broker = FakeBroker()
    refusal = deleted.DeletableTopicResult("t", error_code=ErrorCode.NOT_CONTROLLER)
    broker.on(
        ApiKey.DELETE_TOPICS,
        deleted.DeleteTopicsResponse(responses=[refusal]),
        deleted.DeleteTopicsResponse(responses=[deleted.DeletableTopicResult("t")]),
    )
    async with admin_of(broker) as admin:
        assert await admin.topics.delete(["t"]) == {"t": None}
    assert len(broker.requests(ApiKey.DELETE_TOPICS)) == 2


async def test_topics_are_listed_described_and_grown() -> None:
    broker = FakeBroker()
    broker.partitions = {"u": 1, "t": 2}
    broker.on(
        ApiKey.CREATE_PARTITIONS,
        grown.CreatePartitionsResponse(
            results=[
                grown.CreatePartitionsTopicResult("t", 0),
                grown.CreatePartitionsTopicResult("u", 37, "too few"),
            ]
        ),
    )
    async with admin_of(broker) as admin:
        assert [topic.name for topic in await admin.topics.list_all()] == ["t", "u"]
        found = await admin.topics.describe(["t", "nope"])
        assert not isinstance(found["t"], KafkaError)
        assert list(found["t"].partitions) == [0, 1]
        assert code(found["nope"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        outcome = await admin.topics.create_partitions({"t": 5, "u": 0}, {"t": [[1], [2], [1]]})
    assert outcome["t"] is None
    assert str(outcome["u"]) == "INVALID_PARTITIONS: too few"
    request = broker.requests(ApiKey.CREATE_PARTITIONS)[0]
    assert [a.broker_ids for a in request.topics[0].assignments] == [[1], [2], [1]]
    assert request.topics[1].assignments is None


async def test_the_cluster_is_described() -> None:
    broker = FakeBroker()
    members = [DescribeClusterBroker(2, "b", 9, "r"), DescribeClusterBroker(1, "a", 8)]
    broker.on(
        ApiKey.DESCRIBE_CLUSTER,
        DescribeClusterResponse(cluster_id="c", controller_id=2, brokers=members),
    )
    async with admin_of(broker) as admin:
        found = await admin.topics.describe_cluster()
    assert (found.cluster_id, found.controller_id) == ("c", 2)
    assert [(b.node_id, str(b.address), b.rack) for b in found.brokers] == [
        (1, "a:8", None),
        (2, "b:9", "r"),
    ]


async def test_leaders_are_asked_about_their_partitions() -> None:
    first, second = FakeBroker(1), FakeBroker(2)

    def found(index: int, offset: int) -> offsets.ListOffsetsResponse:
        part = offsets.ListOffsetsPartitionResponse(index, 0, 5, offset, 1)
        return offsets.ListOffsetsResponse(topics=[offsets.ListOffsetsTopicResponse("t", [part])])

    def removed(index: int, error: int) -> deleted_records.DeleteRecordsResponse:
        part = deleted_records.DeleteRecordsPartitionResult(index, 7, error)
        topic = deleted_records.DeleteRecordsTopicResult("t", [part])
        return deleted_records.DeleteRecordsResponse(topics=[topic])

    moved = offsets.ListOffsetsPartitionResponse(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    first.on(ApiKey.LIST_OFFSETS, found(0, 10))
    second.on(
        ApiKey.LIST_OFFSETS,
        offsets.ListOffsetsResponse(topics=[offsets.ListOffsetsTopicResponse("t", [moved])]),
        found(1, 20),
    )
    first.on(ApiKey.DELETE_RECORDS, removed(0, 0))
    second.on(ApiKey.DELETE_RECORDS, removed(1, ErrorCode.OFFSET_OUT_OF_RANGE))
    async with admin_of(first, second) as admin:
        ends = await admin.partitions.offsets({P0: LATEST, P1: LATEST})
        assert ends == {P0: OffsetAtTime(10, 5, 1), P1: OffsetAtTime(20, 5, 1)}
        outcome = await admin.partitions.delete_records({P0: 7, P1: 99})
    assert outcome[P0] == 7
    assert code(outcome[P1]) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert len(first.requests(ApiKey.LIST_OFFSETS)) == 1
    assert len(second.requests(ApiKey.LIST_OFFSETS)) == 2
    assert first.requests(ApiKey.LIST_OFFSETS)[0].replica_id == -1


async def test_log_directories_of_every_broker() -> None:
    first, second = FakeBroker(1), FakeBroker(2)
    part = log_dirs.DescribeLogDirsPartition(0, 100, 3, True)
    topic = log_dirs.DescribeLogDirsTopic("t", [part])
    result = log_dirs.DescribeLogDirsResult(0, "data", [topic], 1000, 500)
    first.on(ApiKey.DESCRIBE_LOG_DIRS, log_dirs.DescribeLogDirsResponse(results=[result]))
    second.on(
        ApiKey.DESCRIBE_LOG_DIRS,
        log_dirs.DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    )
    async with admin_of(first, second) as admin:
        found = await admin.partitions.log_dirs(partitions=[P0])
    assert not isinstance(found[1], KafkaError)
    directory = found[1][0]
    assert (directory.path, directory.total_bytes, directory.usable_bytes) == ("data", 1000, 500)
    assert (directory.replicas[P0].size, directory.replicas[P0].future) == (100, True)
    assert code(found[2]) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_brokers_are_asked_about_themselves() -> None:
    first, second = FakeBroker(1), FakeBroker(2)

    def describe(request: Any) -> configs.DescribeConfigsResponse:
        entry = configs.DescribeConfigsResourceResult(
            "k", "v", False, 5, False, [configs.DescribeConfigsSynonym("k", "v", 5)], 2, None
        )
        return configs.DescribeConfigsResponse(
            results=[
                configs.DescribeConfigsResult(0, None, r.resource_type, r.resource_name, [entry])
                for r in request.resources
            ]
        )

    def alter(request: Any) -> altered.IncrementalAlterConfigsResponse:
        return altered.IncrementalAlterConfigsResponse(
            responses=[
                altered.AlterConfigsResourceResponse(40, "bad", r.resource_type, r.resource_name)
                for r in request.resources
            ]
        )

    for broker in (first, second):
        broker.on(ApiKey.DESCRIBE_CONFIGS, describe)
        broker.on(ApiKey.INCREMENTAL_ALTER_CONFIGS, alter)
    topic = ConfigResource(ConfigType.TOPIC, "t")
    other = ConfigResource(ConfigType.BROKER, "2")
    every = ConfigResource(ConfigType.BROKER, "")
    async with admin_of(first, second) as admin:
        found = await admin.configs.describe([topic, other, every], ["k"], synonyms=True)
        changes = {other: [Change("k", "v"), Change("l", None, Operation.DELETE)]}
        outcome = await admin.configs.alter(changes)
    entry = ConfigEntry("k", "v", 5, False, False, (("k", "v", 5),), None)
    assert found == {topic: [entry], other: [entry], every: [entry]}
    assert [r.resource_name for r in second.requests(ApiKey.DESCRIBE_CONFIGS)[0].resources] == ["2"]
    assert str(outcome[other]) == "INVALID_CONFIG: bad"
    assert not first.requests(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    sent = second.requests(ApiKey.INCREMENTAL_ALTER_CONFIGS)[0].resources[0].configs
    assert [(c.name, c.config_operation, c.value) for c in sent] == [("k", 0, "v"), ("l", 1, None)]


def group_broker(node_id: int = 1) -> FakeBroker:
    broker = FakeBroker(node_id)
    broker.on(ApiKey.FIND_COORDINATOR, FindCoordinatorResponse(coordinators=[Coordinator("g", 1)]))
    return broker


async def test_groups_of_all_brokers_are_listed() -> None:
    first, second = group_broker(1), group_broker(2)
    for broker, name in ((first, "b"), (second, "a")):
        group = listed.ListedGroup(name, "consumer", "Stable", "classic")
        broker.on(ApiKey.LIST_GROUPS, listed.ListGroupsResponse(groups=[group]))
    async with admin_of(first, second) as admin:
        found = await admin.groups.list_all(states=["Stable"], types=["classic"])
    assert [(g.group_id, g.coordinator, g.type) for g in found] == [
        ("a", 2, "classic"),
        ("b", 1, "classic"),
    ]
    assert first.requests(ApiKey.LIST_GROUPS)[0].states_filter == ["Stable"]


async def test_a_group_is_described_by_the_protocol_it_speaks() -> None:
    broker = group_broker()
    topic = consumer_group.TopicPartitions(ID, "t", [0])
    member = consumer_group.Member(
        "m", client_id="c", client_host="/h", assignment=consumer_group.Assignment([topic])
    )
    new = consumer_group.DescribedGroup(0, None, "g", "Stable", 4, 4, "uniform", [member])
    missing = consumer_group.DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, "not one", "g")
    broker.on(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        consumer_group.ConsumerGroupDescribeResponse(groups=[new]),
        consumer_group.ConsumerGroupDescribeResponse(groups=[missing]),
    )
    members = [
        groups.DescribedGroupMember("m", None, "c", "/h", b"", encode_assignment([P0, P1])),
        groups.DescribedGroupMember("n", None, "c", "/h", b"", b"\x00"),
    ]
    old = groups.DescribedGroup(0, None, "g", "Stable", "consumer", "range", members)
    broker.on(ApiKey.DESCRIBE_GROUPS, groups.DescribeGroupsResponse(groups=[old]))
    async with admin_of(broker) as admin:
        modern = (await admin.groups.describe(["g"]))["g"]
        classic = (await admin.groups.describe(["g"]))["g"]
    assert not isinstance(modern, KafkaError)
    assert (modern.type, modern.protocol, modern.epoch) == ("Consumer", "uniform", 4)
    assert modern.members[0].assignment == (P0,)
    assert not isinstance(classic, KafkaError)
    assert (classic.type, classic.protocol) == ("Classic", "range")
    assert [m.assignment for m in classic.members] == [(P0, P1), ()]


async def test_groups_and_offsets_are_changed_with_their_errors() -> None:
    broker = group_broker()
    refused = [deleted_groups.DeletableGroupResult("g", ErrorCode.NON_EMPTY_GROUP)]
    broker.on(ApiKey.DELETE_GROUPS, deleted_groups.DeleteGroupsResponse(results=refused))
    parts = [
        commits.OffsetCommitResponsePartition(0, 0),
        commits.OffsetCommitResponsePartition(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    topic = commits.OffsetCommitResponseTopic(name="t", partitions=parts)
    broker.on(ApiKey.OFFSET_COMMIT, commits.OffsetCommitResponse(topics=[topic]))
    gone = deleted_offsets.OffsetDeleteResponsePartition(1, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    gone_topic = deleted_offsets.OffsetDeleteResponseTopic("t", [gone])
    broker.on(ApiKey.OFFSET_DELETE, deleted_offsets.OffsetDeleteResponse(topics=[gone_topic]))
    async with admin_of(broker) as admin:
        assert code((await admin.groups.delete(["g"]))["g"]) is ErrorCode.NON_EMPTY_GROUP
        offsets_set = {P0: CommittedOffset(5), P1: CommittedOffset(6)}
        failed = await admin.groups.alter_offsets("g", offsets_set)
        assert {key: error.code for key, error in failed.items()} == {
            P1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        kept = await admin.groups.delete_offsets("g", [P1])
        assert code(kept[P1]) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    commit = broker.requests(ApiKey.OFFSET_COMMIT)[0]
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("", -1)


async def test_acls_are_created_found_and_deleted() -> None:
    broker = FakeBroker()
    result = created_acls.AclCreationResult(0, None)
    broker.on(ApiKey.CREATE_ACLS, created_acls.CreateAclsResponse(results=[result]))
    acl = described_acls.AclDescription("User:alice", "*", 3, 3)
    resource = described_acls.DescribeAclsResource(2, "t", 4, [acl])
    broker.on(
        ApiKey.DESCRIBE_ACLS,
        described_acls.DescribeAclsResponse(resources=[resource]),
        described_acls.DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="no authorizer"
        ),
    )
    match = deleted_acls.DeleteAclsMatchingAcl(0, None, 2, "t", 4, "User:alice", "*", 3, 3)
    removed = deleted_acls.DeleteAclsFilterResult(0, None, [match])
    broker.on(ApiKey.DELETE_ACLS, deleted_acls.DeleteAclsResponse(filter_results=[removed]))
    chosen = AclFilter(principal="User:alice")
    async with admin_of(broker) as admin:
        assert await admin.security.create_acls([ACL]) == {ACL: None}
        assert await admin.security.describe_acls(chosen) == [ACL]
        assert await admin.security.delete_acls([chosen]) == {chosen: [ACL]}
        with pytest.raises(KafkaError, match="SECURITY_DISABLED: no authorizer"):
            await admin.security.describe_acls()
    asked = broker.requests(ApiKey.DESCRIBE_ACLS)[0]
    assert AclFilter.of(asked) == chosen


async def test_passwords_do_not_travel() -> None:
    broker = FakeBroker()
    done = AlterUserScramCredentialsResult("bob", 0, None)
    broker.on(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, AlterUserScramCredentialsResponse(results=[done])
    )
    user = ScramUser("bob", ScramMechanism.SHA_512, Secret("open sesame"))
    async with admin_of(broker) as admin:
        assert await admin.security.alter_users([user]) == {"bob": None}
    sent = broker.requests(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)[0].upsertions[0]
    expected = ScramMechanism.SHA_512.salted_password("open sesame", sent.salt, 4096)
    assert (sent.mechanism, sent.iterations, sent.salted_password) == (2, 4096, expected)
    assert "sesame" not in repr(user)


async def test_quotas_are_set_and_found() -> None:
    broker = FakeBroker()
    entity = altered_quotas.EntityData("user", None)
    entry = altered_quotas.EntryData(42, "no such key", [entity])
    broker.on(ApiKey.ALTER_CLIENT_QUOTAS, altered_quotas.AlterClientQuotasResponse(entries=[entry]))
    value = quotas.ValueData("producer_byte_rate", 5.0)
    found = quotas.EntryData([quotas.EntityData("user", "bob")], [value])
    broker.on(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        quotas.DescribeClientQuotasResponse(error_message=None, entries=[found]),
    )
    default = (("user", None),)
    async with admin_of(broker) as admin:
        outcome = await admin.security.alter_quotas({default: {"a": 1.5, "b": None}})
        assert code(outcome[default]) is ErrorCode.INVALID_REQUEST
        listed_quotas = await admin.security.describe_quotas({"user": "bob"}, any_of=["client-id"])
    assert listed_quotas == {(("user", "bob"),): {"producer_byte_rate": 5.0}}
    sent = broker.requests(ApiKey.ALTER_CLIENT_QUOTAS)[0].entries[0].ops
    assert [(op.key, op.value, op.remove) for op in sent] == [("a", 1.5, False), ("b", 0.0, True)]
    asked = broker.requests(ApiKey.DESCRIBE_CLIENT_QUOTAS)[0]
    assert [(c.entity_type, c.match_type, c.match) for c in asked.components] == [
        ("user", 0, "bob"),
        ("client-id", 2, None),
    ]
    assert asked.strict
