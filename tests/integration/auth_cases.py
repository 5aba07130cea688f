"""One request of every API that acts on named resources, with the permissions that it needs.

The codes are those of Kafka 4.3; ``tests/interop/test_auth_matrix_kafka.py`` checks them there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skylog.kernel.acl import AclOperation as Op
from skylog.kernel.acl import ResourceType as Resource
from skylog.kernel.errors import ErrorCode as Code
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.apis import ApiKey
from skylog.wire.messages import (
    add_partitions_to_txn_request,
    alter_client_quotas_request,
    alter_configs_request,
    alter_partition_reassignments_request,
    alter_partition_request,
    alter_user_scram_credentials_request,
    broker_registration_request,
    commit_staged_request,
    create_acls_request,
    create_partitions_request,
    create_topics_request,
    delete_acls_request,
    delete_records_request,
    delete_topics_request,
    describe_client_quotas_request,
    describe_configs_request,
    describe_log_dirs_request,
    describe_producers_request,
    describe_topic_partitions_request,
    describe_user_scram_credentials_request,
    elect_leaders_request,
    fetch_request,
    finish_segments_request,
    incremental_alter_configs_request,
    join_group_request,
    leave_group_request,
    list_offsets_request,
    list_partition_reassignments_request,
    locate_batches_request,
    metadata_request,
    offset_commit_request,
    offset_delete_request,
    offset_fetch_request,
    offset_for_leader_epoch_request,
    pin_staged_request,
    plan_ranges_request,
    produce_request,
    start_segments_request,
    txn_offset_commit_request,
    update_features_request,
    write_txn_markers_request,
)
from skylog.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from skylog.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from skylog.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from skylog.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.controller_registration_request import ControllerRegistrationRequest
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.describe_acls_request import DescribeAclsRequest
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.describe_diskless_coordinators_request import (
    DescribeDisklessCoordinatorsRequest,
)
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData
from skylog.wire.messages.describe_quorum_request import TopicData as QuorumTopic
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest
from skylog.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from skylog.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from skylog.wire.messages.end_txn_request import EndTxnRequest
from skylog.wire.messages.envelope_request import EnvelopeRequest
from skylog.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from skylog.wire.messages.list_diskless_files_request import ListDisklessFilesRequest
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_transactions_request import ListTransactionsRequest
from skylog.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from skylog.wire.messages.sync_group_request import SyncGroupRequest
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from skylog.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from skylog.wire.messages.vote_request import VoteRequest
from skylog.wire.records import encode_batch
from skylog.wire.schema import Message

TOPIC_CONFIG, ANY, LITERAL, ALLOW, DENY = 2, 1, 3, 3, 2
CLUSTER = "kafka-cluster"
OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class Things:
    """The resources of a request: a topic of one partition and a group with a committed offset."""

    topic: str
    topic_id: Uuid
    group: str
    cluster_id: str
    broker_epoch: int = -1

    @property
    def user(self) -> str:
        return f"user-{self.topic}"

    @property
    def transactional_id(self) -> str:
        return f"tx-{self.topic}"


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission; ``name`` is a field of ``Things``, or a literal name."""

    operation: Op
    resource: Resource
    name: Callable[[Things], str]

    def named(self, things: Things) -> tuple[Op, Resource, str]:
        return self.operation, self.resource, self.name(things)


def topic(operation: Op) -> Grant:
    return Grant(operation, Resource.TOPIC, lambda things: things.topic)


def group(operation: Op) -> Grant:
    return Grant(operation, Resource.GROUP, lambda things: things.group)


def transactional_id(operation: Op) -> Grant:
    return Grant(operation, Resource.TRANSACTIONAL_ID, lambda things: things.transactional_id)


def cluster(operation: Op) -> Grant:
    return Grant(operation, Resource.CLUSTER, lambda _: CLUSTER)


NO_TOPIC, NO_GROUP, NO_CLUSTER = (
    frozenset({Code.TOPIC_AUTHORIZATION_FAILED}),
    frozenset({Code.GROUP_AUTHORIZATION_FAILED}),
    frozenset({Code.CLUSTER_AUTHORIZATION_FAILED}),
)
NO_TRANSACTIONAL_ID = frozenset({Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED})
NOTHING_WRONG: frozenset[Code] = frozenset()
NOT_DISKLESS = frozenset({Code.INVALID_REQUEST})


@dataclass(frozen=True, slots=True)
class Case:
    """A request, the permissions it needs, and every error in its responses."""

    build: Callable[[Things, int], Message]
    grants: tuple[Grant, ...]
    denied: frozenset[Code]
    allowed: frozenset[Code] = NOTHING_WRONG
    # Whether it changes anything when it is allowed, in its newest version.
    changes: bool = False
    # Operations that imply the first one.
    instead: frozenset[Op] = frozenset()
    # The errors in versions before this one, which need other permissions.
    otherwise_before: int = 0
    otherwise_denied: frozenset[Code] = NOTHING_WRONG
    # Versions whose response is empty because it has no error field.
    silent_before: int = 0
    # Versions that name topics by id, which may be answered as unknown.
    by_id_from: int = 1 << 15

    def denied_in(self, version: int) -> frozenset[Code]:
        if version < self.otherwise_before:
            return self.otherwise_denied
        return NOTHING_WRONG if version < self.silent_before else self.denied


def batch(value: bytes = b"value") -> bytes:
    return encode_batch([(b"key", value)], timestamp=1_700_000_000_000)


def _produce(things: Things, version: int) -> Message:
    m = produce_request
    data = m.TopicProduceData(things.topic, things.topic_id, [m.PartitionProduceData(0, batch())])
    return m.ProduceRequest(None, -1, 5000, [data])


def _add_partitions(things: Things, version: int) -> Message:
    m = add_partitions_to_txn_request
    topics = [m.AddPartitionsToTxnTopic(things.topic, [0])]
    if version < 4:
        return m.AddPartitionsToTxnRequest([], things.transactional_id, 1, 0, topics)
    # Without a name, so that the response does not depend on the coordinator.
    return m.AddPartitionsToTxnRequest([m.AddPartitionsToTxnTransaction("", 1, 0, False, topics)])


def _write_markers(things: Things, version: int) -> Message:
    m = write_txn_markers_request
    topics = [m.WritableTxnMarkerTopic(things.topic, [0])]
    return m.WriteTxnMarkersRequest([m.WritableTxnMarker(4711, 0, True, topics)])


def _txn_offset_commit(things: Things, version: int) -> Message:
    m = txn_offset_commit_request
    partitions = [m.TxnOffsetCommitRequestPartition(0, 1, committed_metadata="")]
    return m.TxnOffsetCommitRequest(
        things.transactional_id,
        things.group,
        1,
        0,
        topics=[m.TxnOffsetCommitRequestTopic(things.topic, partitions)],
    )


def _plan_ranges(things: Things, version: int) -> Message:
    m = plan_ranges_request
    return m.PlanRangesRequest(1, [m.PlanTopic(things.topic, [m.PlanPartition()])])


def _locate_batches(things: Things, version: int) -> Message:
    m = locate_batches_request
    return m.LocateBatchesRequest(1, [m.LocateRange(things.topic, end_offset=1)])


def _describe_remote_log(things: Things, version: int) -> Message:
    return DescribeRemoteLogRequest(things.topic_id, 0, limit=1)


def _start_segments(things: Things, version: int) -> Message:
    m = start_segments_request
    return m.StartSegmentsRequest(partitions=[m.StartPartition(things.topic_id, 0)])


def _finish_segments(things: Things, version: int) -> Message:
    m = finish_segments_request
    segments = [m.FinishSegment(things.topic_id)]
    return m.FinishSegmentsRequest(partitions=[m.FinishPartition(things.topic_id, 0, 0, segments)])


def _commit_staged(things: Things, version: int) -> Message:
    m = commit_staged_request
    batches = [m.StagedBatch(things.topic, byte_offset=1, byte_size=100)]
    return m.CommitStagedRequest("writer", 1, [m.StagedObject("staging/x", 101, batches)])


def _pin_staged(things: Things, version: int) -> Message:
    m = pin_staged_request
    pinned = m.PinObject("staging/x", [m.PinTopic(things.topic, partitions=[0])])
    return m.PinStagedRequest("writer", 1, 1000, False, [pinned])


def _fetch(things: Things, version: int) -> Message:
    m = fetch_request
    wanted = m.FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    return m.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[m.FetchTopic(things.topic, things.topic_id, [wanted])],
    )


def _list_offsets(things: Things, version: int) -> Message:
    m = list_offsets_request
    wanted = m.ListOffsetsPartition(0, timestamp=-1)
    return m.ListOffsetsRequest(-1, 0, [m.ListOffsetsTopic(things.topic, [wanted])])


def _metadata(things: Things, version: int) -> Message:
    m = metadata_request
    asked = m.MetadataRequestTopic(name=things.topic)
    return m.MetadataRequest([asked], allow_auto_topic_creation=True)


def _offset_commit(things: Things, version: int) -> Message:
    m = offset_commit_request
    part = m.OffsetCommitRequestPartition(0, 7, committed_metadata="")
    named = m.OffsetCommitRequestTopic(things.topic, things.topic_id, [part])
    return m.OffsetCommitRequest(things.group, topics=[named])


def _offset_fetch(things: Things, version: int) -> Message:
    m = offset_fetch_request
    if version < 8:
        named = m.OffsetFetchRequestTopic(things.topic, [0])
        return m.OffsetFetchRequest(things.group, [named])
    many = m.OffsetFetchRequestTopics(things.topic, things.topic_id, [0])
    return m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(things.group, topics=[many])])


def _find_coordinator(things: Things, version: int) -> Message:
    if version < 4:
        return FindCoordinatorRequest(things.group)
    return FindCoordinatorRequest(coordinator_keys=[things.group])


def _join_group(things: Things, version: int) -> Message:
    m = join_group_request
    protocol = m.JoinGroupRequestProtocol("range", b"\0\0")
    return m.JoinGroupRequest(
        things.group, 6000, 6000, protocol_type="consumer", protocols=[protocol]
    )


def _sync_group(things: Things, version: int) -> Message:
    return SyncGroupRequest(
        things.group, 1, "nobody", protocol_type="consumer", protocol_name="range"
    )


def _leave_group(things: Things, version: int) -> Message:
    if version < 3:
        return leave_group_request.LeaveGroupRequest(things.group, "nobody")
    member = leave_group_request.MemberIdentity("nobody")
    return leave_group_request.LeaveGroupRequest(things.group, members=[member])


def _create_topics(things: Things, version: int) -> Message:
    m = create_topics_request
    return m.CreateTopicsRequest([m.CreatableTopic(f"{things.topic}-new", 1, 1)])


def _delete_topics(things: Things, version: int) -> Message:
    m = delete_topics_request
    if version < 6:
        return m.DeleteTopicsRequest(topic_names=[things.topic], timeout_ms=30_000)
    return m.DeleteTopicsRequest([m.DeleteTopicState(things.topic)], timeout_ms=30_000)


def _create_partitions(things: Things, version: int) -> Message:
    m = create_partitions_request
    return m.CreatePartitionsRequest([m.CreatePartitionsTopic(things.topic, 2, None)], 5000)


def _delete_records(things: Things, version: int) -> Message:
    m = delete_records_request
    part = m.DeleteRecordsPartition(0, 1)
    return m.DeleteRecordsRequest([m.DeleteRecordsTopic(things.topic, [part])], 5000)


def _offset_for_leader_epoch(things: Things, version: int) -> Message:
    m = offset_for_leader_epoch_request
    part = m.OffsetForLeaderPartition(0, -1, 0)
    return m.OffsetForLeaderEpochRequest(-2, [m.OffsetForLeaderTopic(things.topic, [part])])


def _offset_delete(things: Things, version: int) -> Message:
    m = offset_delete_request
    part = m.OffsetDeleteRequestPartition(0)
    named = m.OffsetDeleteRequestTopic(things.topic, [part])
    return m.OffsetDeleteRequest(things.group, [named])


def _acl(things: Things) -> tuple[int, str, int, str, str, int, int]:
    return Resource.TOPIC, things.topic, LITERAL, "User:nobody", "*", Op.READ, ALLOW


def _describe_acls(things: Things, version: int) -> Message:
    return DescribeAclsRequest(*_acl(things))


def _create_acls(things: Things, version: int) -> Message:
    m = create_acls_request
    return m.CreateAclsRequest([m.AclCreation(*_acl(things))])


def _delete_acls(things: Things, version: int) -> Message:
    """Deletes what ``Things`` were prepared with: a denial of User:ghost."""
    m = delete_acls_request
    pattern = (Resource.TOPIC, things.topic, LITERAL, "User:ghost", "*", Op.READ, DENY)
    return m.DeleteAclsRequest([m.DeleteAclsFilter(*pattern)])


def _describe_configs(things: Things, version: int) -> Message:
    m = describe_configs_request
    named = m.DescribeConfigsResource(TOPIC_CONFIG, things.topic, ["retention.ms"])
    return m.DescribeConfigsRequest([named])


def _alter_configs(things: Things, version: int) -> Message:
    m = alter_configs_request
    change = m.AlterableConfig("retention.ms", "77")
    return m.AlterConfigsRequest([m.AlterConfigsResource(TOPIC_CONFIG, things.topic, [change])])


def _incremental_alter_configs(things: Things, version: int) -> Message:
    m = incremental_alter_configs_request
    change = m.AlterableConfig("retention.ms", 0, "78")
    named = m.AlterConfigsResource(TOPIC_CONFIG, things.topic, [change])
    return m.IncrementalAlterConfigsRequest([named])


def _describe_log_dirs(things: Things, version: int) -> Message:
    m = describe_log_dirs_request
    return m.DescribeLogDirsRequest([m.DescribableLogDirTopic(things.topic, [0])])


def _elect_leaders(things: Things, version: int) -> Message:
    m = elect_leaders_request
    return m.ElectLeadersRequest(0, [m.TopicPartitions(things.topic, [0])], 5000)


def _alter_reassignments(things: Things, version: int) -> Message:
    m = alter_partition_reassignments_request
    part = m.ReassignablePartition(0, None)
    return m.AlterPartitionReassignmentsRequest(
        5000, topics=[m.ReassignableTopic(things.topic, [part])]
    )


def _list_reassignments(things: Things, version: int) -> Message:
    m = list_partition_reassignments_request
    named = m.ListPartitionReassignmentsTopics(things.topic, [0])
    return m.ListPartitionReassignmentsRequest(5000, [named])


def _describe_quotas(things: Things, version: int) -> Message:
    m = describe_client_quotas_request
    return m.DescribeClientQuotasRequest([m.ComponentData("user", 0, things.user)])


def _alter_quotas(things: Things, version: int) -> Message:
    m = alter_client_quotas_request
    entry = m.EntryData(
        [m.EntityData("user", things.user)], [m.OpData("consumer_byte_rate", 1000.0)]
    )
    return m.AlterClientQuotasRequest([entry])


def _describe_scram(things: Things, version: int) -> Message:
    m = describe_user_scram_credentials_request
    return m.DescribeUserScramCredentialsRequest([m.UserName(things.user)])


def _alter_scram(things: Things, version: int) -> Message:
    m = alter_user_scram_credentials_request
    upsertion = m.ScramCredentialUpsertion(things.user, 1, 4096, b"salt" * 4, b"p" * 32)
    return m.AlterUserScramCredentialsRequest(upsertions=[upsertion])


def _describe_quorum(things: Things, version: int) -> Message:
    return DescribeQuorumRequest([QuorumTopic("__cluster_metadata", [PartitionData(0)])])


def _update_features(things: Things, version: int) -> Message:
    m = update_features_request
    update = m.FeatureUpdateKey("no.such.feature", 1)
    return m.UpdateFeaturesRequest(5000, [update])


def _describe_producers(things: Things, version: int) -> Message:
    m = describe_producers_request
    return m.DescribeProducersRequest([m.TopicRequest(things.topic, [0])])


def _describe_topic_partitions(things: Things, version: int) -> Message:
    m = describe_topic_partitions_request
    return m.DescribeTopicPartitionsRequest([m.TopicRequest(things.topic)])


def _registration(things: Things, version: int) -> Message:
    m = broker_registration_request
    listener = m.Listener("PLAINTEXT", "127.0.0.1", 1, 0)
    return m.BrokerRegistrationRequest(
        4711, "another-cluster", Uuid(bytes(15) + b"\1"), [listener], rack=None
    )


def _alter_partition(things: Things, version: int) -> Message:
    m = alter_partition_request
    state = m.BrokerState(1, things.broker_epoch)
    part = m.PartitionData(0, 0, new_isr_with_epochs=[state])
    if version < 3:
        part = m.PartitionData(0, 0, new_isr=[1])
    return m.AlterPartitionRequest(1, things.broker_epoch, [m.TopicData(things.topic_id, [part])])


def _new_topic(operation: Op) -> Grant:
    return Grant(operation, Resource.TOPIC, lambda things: f"{things.topic}-new")


# Cases in which a controller's listener needs more than a broker's.
CONTROLLER_CASES: dict[ApiKey, Case] = {
    ApiKey.DESCRIBE_CLUSTER: Case(
        lambda _, version: DescribeClusterRequest(True, 2 if version else 1),
        (cluster(Op.ALTER),),
        NO_CLUSTER,
    ),
    # It serves only the metadata log, to its other replicas.
    ApiKey.FETCH: Case(
        _fetch,
        (cluster(Op.CLUSTER_ACTION),),
        NO_CLUSTER,
        frozenset({Code.INVALID_REQUEST}),
    ),
}

CASES: dict[ApiKey, Case] = {
    ApiKey.PRODUCE: Case(_produce, (topic(Op.WRITE),), NO_TOPIC, changes=True, by_id_from=13),
    ApiKey.FETCH: Case(_fetch, (topic(Op.READ),), NO_TOPIC, by_id_from=13),
    ApiKey.LIST_OFFSETS: Case(_list_offsets, (topic(Op.DESCRIBE),), NO_TOPIC),
    ApiKey.METADATA: Case(_metadata, (topic(Op.DESCRIBE),), NO_TOPIC),
    ApiKey.OFFSET_COMMIT: Case(
        _offset_commit, (group(Op.READ), topic(Op.READ)), NO_GROUP, changes=True, by_id_from=10
    ),
    ApiKey.OFFSET_FETCH: Case(
        _offset_fetch, (group(Op.DESCRIBE), topic(Op.DESCRIBE)), NO_GROUP, by_id_from=10
    ),
    ApiKey.FIND_COORDINATOR: Case(_find_coordinator, (group(Op.DESCRIBE),), NO_GROUP),
    ApiKey.JOIN_GROUP: Case(
        _join_group, (group(Op.READ),), NO_GROUP, frozenset({Code.MEMBER_ID_REQUIRED})
    ),
    ApiKey.HEARTBEAT: Case(
        lambda things, _: HeartbeatRequest(things.group, 1, "nobody"),
        (group(Op.READ),), NO_GROUP, frozenset({Code.UNKNOWN_MEMBER_ID}),
    ),
    ApiKey.LEAVE_GROUP: Case(
        _leave_group, (group(Op.READ),), NO_GROUP, frozenset({Code.UNKNOWN_MEMBER_ID})
    ),
    ApiKey.SYNC_GROUP: Case(
        _sync_group, (group(Op.READ),), NO_GROUP, frozenset({Code.UNKNOWN_MEMBER_ID})
    ),
    ApiKey.DESCRIBE_GROUPS: Case(
        lambda things, _: DescribeGroupsRequest([things.group]), (group(Op.DESCRIBE),), NO_GROUP
    ),
    # No user is refused; each sees what it may see.
    ApiKey.LIST_GROUPS: Case(
        lambda *_: ListGroupsRequest(), (group(Op.DESCRIBE),), NOTHING_WRONG
    ),
    # An unknown member, since a real one would change the group.
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Case(
        lambda things, _: ConsumerGroupHeartbeatRequest(
            things.group, "nobody", 1, subscribed_topic_names=[things.topic]
        ),
        (group(Op.READ), topic(Op.DESCRIBE)), NO_GROUP, frozenset({Code.GROUP_ID_NOT_FOUND}),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Case(
        lambda things, _: ConsumerGroupDescribeRequest([things.group]),
        (group(Op.DESCRIBE),), NO_GROUP, frozenset({Code.GROUP_ID_NOT_FOUND}),
    ),
    ApiKey.DELETE_GROUPS: Case(
        lambda things, _: DeleteGroupsRequest([things.group]),
        (group(Op.DELETE),), NO_GROUP, changes=True,
    ),
    ApiKey.OFFSET_DELETE: Case(
        _offset_delete, (group(Op.DELETE), topic(Op.READ)), NO_GROUP, changes=True
    ),
    ApiKey.CREATE_TOPICS: Case(
        _create_topics,
        (_new_topic(Op.CREATE), _new_topic(Op.DESCRIBE_CONFIGS)), NO_TOPIC, changes=True,
    ),
    ApiKey.DELETE_TOPICS: Case(_delete_topics, (topic(Op.DELETE),), NO_TOPIC, changes=True),
    ApiKey.CREATE_PARTITIONS: Case(_create_partitions, (topic(Op.ALTER),), NO_TOPIC, changes=True),
    ApiKey.DELETE_RECORDS: Case(_delete_records, (topic(Op.DELETE),), NO_TOPIC, changes=True),
    ApiKey.INIT_PRODUCER_ID: Case(
        lambda *_: InitProducerIdRequest(None, 60_000),
        (cluster(Op.IDEMPOTENT_WRITE),), NO_CLUSTER, changes=True,
    ),
    # Without the topic of transactions there is no coordinator.
    ApiKey.ADD_PARTITIONS_TO_TXN: Case(
        _add_partitions,
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, frozenset({Code.INVALID_REQUEST}),
        otherwise_before=4, otherwise_denied=NO_TRANSACTIONAL_ID,
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Case(
        lambda things, _: AddOffsetsToTxnRequest(things.transactional_id, 1, 0, things.group),
        (transactional_id(Op.WRITE), group(Op.READ)),
        NO_TRANSACTIONAL_ID, frozenset({Code.NOT_COORDINATOR}),
    ),
    ApiKey.END_TXN: Case(
        lambda things, _: EndTxnRequest(things.transactional_id, 1, 0, True),
        (transactional_id(Op.WRITE),), NO_TRANSACTIONAL_ID, frozenset({Code.NOT_COORDINATOR}),
    ),
    ApiKey.WRITE_TXN_MARKERS: Case(
        _write_markers,
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, changes=True, instead=frozenset({Op.ALTER}),
    ),
    ApiKey.TXN_OFFSET_COMMIT: Case(
        _txn_offset_commit,
        (transactional_id(Op.WRITE), group(Op.READ), topic(Op.READ)),
        NO_TRANSACTIONAL_ID, frozenset({Code.COORDINATOR_NOT_AVAILABLE}),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: Case(
        lambda things, _: DescribeTransactionsRequest([things.transactional_id]),
        (transactional_id(Op.DESCRIBE),), NO_TRANSACTIONAL_ID, frozenset({Code.NOT_COORDINATOR}),
    ),
    # No user is refused; each sees what it may see.
    ApiKey.LIST_TRANSACTIONS: Case(
        lambda *_: ListTransactionsRequest(), (transactional_id(Op.DESCRIBE),), NOTHING_WRONG
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Case(
        _offset_for_leader_epoch, (topic(Op.DESCRIBE),), NO_TOPIC
    ),
    ApiKey.DESCRIBE_ACLS: Case(_describe_acls, (cluster(Op.DESCRIBE),), NO_CLUSTER),
    ApiKey.CREATE_ACLS: Case(_create_acls, (cluster(Op.ALTER),), NO_CLUSTER, changes=True),
    ApiKey.DELETE_ACLS: Case(_delete_acls, (cluster(Op.ALTER),), NO_CLUSTER, changes=True),
    ApiKey.DESCRIBE_CONFIGS: Case(_describe_configs, (topic(Op.DESCRIBE_CONFIGS),), NO_TOPIC),
    ApiKey.ALTER_CONFIGS: Case(_alter_configs, (topic(Op.ALTER_CONFIGS),), NO_TOPIC, changes=True),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Case(
        _incremental_alter_configs, (topic(Op.ALTER_CONFIGS),), NO_TOPIC, changes=True
    ),
    ApiKey.LIST_CONFIG_RESOURCES: Case(
        lambda *_: ListConfigResourcesRequest(), (cluster(Op.DESCRIBE_CONFIGS),), NO_CLUSTER
    ),
    ApiKey.DESCRIBE_LOG_DIRS: Case(
        _describe_log_dirs, (cluster(Op.DESCRIBE),), NO_CLUSTER, silent_before=3
    ),
    ApiKey.PLAN_RANGES: Case(_plan_ranges, (topic(Op.READ),), NO_TOPIC),
    # The topic is not an internal one that these are for.
    ApiKey.LOCATE_BATCHES: Case(_locate_batches, (topic(Op.READ),), NO_TOPIC, NOT_DISKLESS),
    ApiKey.COMMIT_STAGED: Case(_commit_staged, (topic(Op.WRITE),), NO_TOPIC, NOT_DISKLESS),
    ApiKey.PIN_STAGED: Case(_pin_staged, (topic(Op.WRITE),), NO_TOPIC, NOT_DISKLESS),
    ApiKey.DESCRIBE_DISKLESS_COORDINATORS: Case(
        lambda *_: DescribeDisklessCoordinatorsRequest(), (cluster(Op.DESCRIBE),), NO_CLUSTER
    ),
    ApiKey.LIST_DISKLESS_FILES: Case(
        lambda *_: ListDisklessFilesRequest(), (cluster(Op.DESCRIBE),), NO_CLUSTER
    ),
    # The topic is not tiered.
    ApiKey.DESCRIBE_REMOTE_LOG: Case(
        _describe_remote_log,
        (topic(Op.DESCRIBE),), NO_TOPIC, frozenset({Code.INVALID_REQUEST}), by_id_from=0,
    ),
    ApiKey.START_SEGMENTS: Case(
        _start_segments, (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER,
        frozenset({Code.INVALID_REQUEST}),
    ),
    ApiKey.FINISH_SEGMENTS: Case(
        _finish_segments, (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER,
        frozenset({Code.INVALID_REQUEST}),
    ),
    ApiKey.ELECT_LEADERS: Case(
        _elect_leaders, (cluster(Op.ALTER),), NO_CLUSTER, frozenset({Code.ELECTION_NOT_NEEDED})
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Case(
        _alter_reassignments,
        (cluster(Op.ALTER),), NO_CLUSTER, frozenset({Code.NO_REASSIGNMENT_IN_PROGRESS}),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Case(
        _list_reassignments, (cluster(Op.DESCRIBE),), NO_CLUSTER
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Case(
        _describe_quotas, (cluster(Op.DESCRIBE_CONFIGS),), NO_CLUSTER
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: Case(
        _alter_quotas, (cluster(Op.ALTER_CONFIGS),), NO_CLUSTER, changes=True
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Case(
        _describe_scram,
        (cluster(Op.DESCRIBE),), NO_CLUSTER, frozenset({Code.RESOURCE_NOT_FOUND}),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Case(
        _alter_scram, (cluster(Op.ALTER),), NO_CLUSTER, changes=True
    ),
    ApiKey.DESCRIBE_QUORUM: Case(_describe_quorum, (cluster(Op.DESCRIBE),), NO_CLUSTER),
    ApiKey.UPDATE_FEATURES: Case(
        _update_features, (cluster(Op.ALTER),), NO_CLUSTER, frozenset({Code.INVALID_UPDATE_VERSION})
    ),
    ApiKey.UNREGISTER_BROKER: Case(
        lambda *_: UnregisterBrokerRequest(4711),
        (cluster(Op.ALTER),), NO_CLUSTER, frozenset({Code.BROKER_ID_NOT_REGISTERED}),
    ),
    # Open to all; only the listed operations depend on the user.
    ApiKey.DESCRIBE_CLUSTER: Case(
        lambda *_: DescribeClusterRequest(True), (cluster(Op.DESCRIBE),), NOTHING_WRONG
    ),
    ApiKey.DESCRIBE_PRODUCERS: Case(_describe_producers, (topic(Op.READ),), NO_TOPIC),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Case(
        _describe_topic_partitions, (topic(Op.DESCRIBE),), NO_TOPIC
    ),
    ApiKey.BROKER_REGISTRATION: Case(
        _registration,
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, frozenset({Code.INCONSISTENT_CLUSTER_ID}),
    ),
    ApiKey.BROKER_HEARTBEAT: Case(
        lambda *_: BrokerHeartbeatRequest(4711, 1),
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, frozenset({Code.STALE_BROKER_EPOCH}),
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: Case(
        lambda *_: AllocateProducerIdsRequest(4711, 1),
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, frozenset({Code.STALE_BROKER_EPOCH}),
    ),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: Case(
        lambda *_: AssignReplicasToDirsRequest(4711, 1),
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, frozenset({Code.STALE_BROKER_EPOCH}),
    ),
    ApiKey.CONTROLLER_REGISTRATION: Case(
        lambda *_: ControllerRegistrationRequest(4711),
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, changes=True,
    ),
    ApiKey.ENVELOPE: Case(
        lambda *_: EnvelopeRequest(),
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER,
        frozenset({Code.PRINCIPAL_DESERIALIZATION_FAILURE}),
    ),
    ApiKey.ALTER_PARTITION: Case(
        _alter_partition,
        (cluster(Op.CLUSTER_ACTION),), NO_CLUSTER, frozenset({Code.STALE_BROKER_EPOCH}),
    ),
    **{
        ApiKey(message.API_KEY): Case(
            lambda *_, message=message: message(cluster_id=OTHER_CLUSTER),
            (cluster(operation),), NO_CLUSTER, frozenset({Code.INCONSISTENT_CLUSTER_ID}),
        )
        for message, operation in (
            (VoteRequest, Op.CLUSTER_ACTION),
            (BeginQuorumEpochRequest, Op.CLUSTER_ACTION),
            (EndQuorumEpochRequest, Op.CLUSTER_ACTION),
            (FetchSnapshotRequest, Op.CLUSTER_ACTION),
            (UpdateRaftVoterRequest, Op.CLUSTER_ACTION),
            (AddRaftVoterRequest, Op.ALTER),
            (RemoveRaftVoterRequest, Op.ALTER),
        )
    },
}  # fmt: skip

# These come before authentication, so they need no permission.
UNGUARDED = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


def errors_in(answer: Any) -> frozenset[Code]:
    """Every error code in a response, at any depth."""
    found: set[Code] = set()
    _collect(answer, found)
    return frozenset(found)


def _collect(value: Any, found: set[Code]) -> None:
    if isinstance(value, list):
        for item in value:
            _collect(item, found)
    elif hasattr(value, "FIELDS"):
        for name in value.__slots__:
            inner = getattr(value, name)
            if name.endswith("error_code"):
                if inner:
                    found.add(Code(inner))
            else:
                _collect(inner, found)


def missing(things: Things) -> Things:
    """Names of the same length that do not exist."""
    return Things(things.topic[:-1] + "_", ZERO_UUID, things.group[:-1] + "_", things.cluster_id)
