"""Requests to both controllers, in order; None stands for the latest version."""

from __future__ import annotations

from typing import Any

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.messages import alter_configs_request as legacy
from skylog.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from skylog.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skylog.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_topics_request import CreateTopicsRequest
from skylog.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.describe_acls_request import DescribeAclsRequest
from skylog.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from skylog.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from skylog.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from skylog.wire.schema import Message
from tests.unit.controller.support import topic

Question = tuple[Message, int | None]
UNKNOWN = Uuid(b"unknown topic id")
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def create(*topics: Any, version: int | None = None, **options: Any) -> Question:
    return CreateTopicsRequest(list(topics), **options), version


def twice(wanted: Any) -> Any:
    wanted.assignments *= 2
    return wanted


def counted(wanted: Any, partitions: int, replicas: int) -> Any:
    wanted.num_partitions, wanted.replication_factor = partitions, replicas
    return wanted


CREATIONS: list[Question] = [
    create(topic("first", 2, retention_ms="5000", cleanup_policy="compact")),
    create(topic("first")),
    create(topic("un.der"), topic("un_der"), topic("plain")),
    create(topic("un_der"), topic("twice"), topic("twice"), topic("__cluster_metadata")),
    create(topic(""), topic("."), topic(".."), topic("x" * 249), topic("x" * 250), topic("a b")),
    create(topic("größe"), topic("a\nb"), topic("a,b"), topic("a:b")),
    create(topic("t", 0), topic("u", -2), topic("v", 1, 0), topic("w", 1, -2), topic("x", 1, 2)),
    create(topic("defaults", -1, -1)),
    create(topic("c1", retention_ms="soon"), topic("c2", no_such_key="1")),
    create(topic("c3", retention_ms=None), topic("c4", cleanup_policy="none")),
    create(topic("c5", min_insync_replicas="0"), topic("c6", max_message_bytes="-1")),
    create(topic("m1", assignments={0: [1], 1: [1]}), topic("m2", assignments={0: [2]})),
    create(topic("m3", assignments={0: []}), topic("m4", assignments={0: [1, 1]})),
    create(topic("m5", assignments={0: [1], 2: [1]}), topic("m6", assignments={1: [1]})),
    create(twice(topic("m7", assignments={0: [1]}))),
    create(counted(topic("m8", assignments={0: [1]}), 1, -1)),
    create(counted(topic("m9", assignments={0: [1]}), -1, 1)),
    create(topic("checked", 3), topic("first"), validate_only=True),
    create(topic("huge", 10_001)),
    create(topic("large", 10_000)),
    create(topic("old", 2), version=2),
    create(topic("old"), topic("!"), version=4),
    create(),
]


def grow(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    given = None if assignments is None else [CreatePartitionsAssignment(a) for a in assignments]
    return CreatePartitionsTopic(name, count, given)


GROWTH: list[Question] = [
    (CreatePartitionsRequest([grow("first", 3), grow("none", 3), grow("plain", 1)]), None),
    (CreatePartitionsRequest([grow("first", 2), grow("plain", 0), grow("old", -1)]), None),
    (CreatePartitionsRequest([grow("plain", 2), grow("plain", 3)]), None),
    (CreatePartitionsRequest([grow("plain", 2, [[1]]), grow("first", 5, [[1]])]), None),
    (CreatePartitionsRequest([grow("plain", 3, [])]), None),
    (CreatePartitionsRequest([grow("plain", 3, [[2]])]), None),
    (CreatePartitionsRequest([grow("plain", 3, [[1, 1]])]), None),
    (CreatePartitionsRequest([grow("plain", 3, [[]])]), None),
    (CreatePartitionsRequest([grow("plain", 4)], validate_only=True), None),
    (CreatePartitionsRequest([grow("plain", 3)]), 0),
    (CreatePartitionsRequest(), None),
]


def alter(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(kind, name, [AlterableConfig(*change) for change in changes])


def altering(*resources: AlterConfigsResource, **options: Any) -> Question:
    return IncrementalAlterConfigsRequest(list(resources), **options), None


def replacing(kind: int, name: str, **configs: str | None) -> Question:
    entries = [legacy.AlterableConfig(key.replace("_", "."), v) for key, v in configs.items()]
    resource = legacy.AlterConfigsResource(kind, name, entries)
    return legacy.AlterConfigsRequest([resource]), None


CONFIGS: list[Question] = [
    altering(alter(TOPIC, "first", ("retention.ms", SET, "7"))),
    altering(alter(TOPIC, "first", ("cleanup.policy", APPEND, "delete"))),
    altering(alter(TOPIC, "first", ("cleanup.policy", SUBTRACT, "compact,none"))),
    altering(alter(TOPIC, "first", ("cleanup.policy", APPEND, "none"))),
    altering(alter(TOPIC, "first", ("retention.ms", APPEND, "1"))),
    altering(alter(TOPIC, "first", ("retention.ms", SET, None))),
    altering(alter(TOPIC, "first", ("retention.ms", SET, "soon"))),
    altering(alter(TOPIC, "first", ("no.such.key", SET, "1"))),
    altering(alter(TOPIC, "first", ("no.such.key", DELETE, None))),
    altering(alter(TOPIC, "first", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))),
    altering(*[alter(TOPIC, "first", ("retention.ms", SET, "1"))] * 2),
    altering(alter(TOPIC, "none", ("retention.ms", SET, "1"))),
    altering(alter(TOPIC, "", ("retention.ms", SET, "1"))),
    altering(alter(TOPIC, "!", ("retention.ms", SET, "1"))),
    altering(alter(TOPIC, "first", ("min.insync.replicas", SET, "2"))),
    altering(alter(TOPIC, "first", ("retention.ms", DELETE, None)), validate_only=True),
    altering(alter(BROKER, "", ("min.insync.replicas", DELETE, None))),
    altering(alter(BROKER, "", ("log.retention.ms", SET, "100000"))),
    altering(alter(BROKER, "1", ("min.insync.replicas", SET, "1"))),
    altering(alter(GROUP, "", ("consumer.session.timeout.ms", SET, "45000"))),
    altering(alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "46000"))),
    altering(alter(GROUP, "g", ("no.such.key", SET, "1"))),
    altering(alter(METRICS, "m", ("interval.ms", SET, "1000"))),
    altering(alter(METRICS, "m", ("no.such.key", SET, "1"))),
    altering(alter(3, "x", ("retention.ms", SET, "1"))),
    altering(alter(TOPIC, "first", ("retention.ms", SET, "9")), alter(TOPIC, "none")),
    altering(),
    replacing(TOPIC, "first", retention_ms="8"),
    replacing(TOPIC, "first", retention_ms=None),
    replacing(TOPIC, "first", retention_ms="soon"),
    replacing(TOPIC, "none", retention_ms="8"),
    replacing(TOPIC, "", retention_ms="8"),
    replacing(LOGGER, "1", x="INFO"),
]


def reassigning(
    index: int, replicas: list[int] | None, name: str = "first", version: int | None = None
) -> Question:
    wanted = ReassignableTopic(name, [ReassignablePartition(index, replicas)])
    return AlterPartitionReassignmentsRequest(topics=[wanted]), version


def electing(kind: int, name: str, *indexes: int) -> Question:
    return ElectLeadersRequest(kind, [TopicPartitions(name, list(indexes))]), None


PLACES: list[Question] = [
    reassigning(0, [1]),
    reassigning(0, [1], version=0),
    reassigning(0, []),
    reassigning(0, [1, 1]),
    reassigning(0, [2]),
    reassigning(0, [1, 2]),
    reassigning(0, None),
    reassigning(9, [1]),
    reassigning(0, [1], "none"),
    (AlterPartitionReassignmentsRequest(), None),
    (ListPartitionReassignmentsRequest(), None),
    (ListPartitionReassignmentsRequest(topics=[]), None),
    (
        ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics("none", [0])]),
        None,
    ),
    electing(0, "first", 0, 9),
    electing(1, "first", 0),
    electing(0, "none", 0),
    electing(2, "first", 0),
]


def acl(
    kind: int, name: str, pattern: int, who: str = "User:a", what: int = 3, allow: int = 3
) -> AclCreation:
    return AclCreation(kind, name, pattern, who, "*", what, allow)


ACLS: list[Question] = [
    (CreateAclsRequest([acl(2, "t", 3), acl(2, "t", 3), acl(2, "te", 4), acl(3, "*", 3)]), None),
    (CreateAclsRequest([acl(2, "", 3), acl(4, "other", 3), acl(4, "kafka-cluster", 3)]), None),
    (CreateAclsRequest([acl(2, "t", 3, "a")]), None),
    (DescribeAclsRequest(1, None, 1, None, None, 1, 1), None),
    (DescribeAclsRequest(2, "test", 2, None, None, 1, 1), None),
    (DescribeAclsRequest(2, "t", 3, "User:b", None, 1, 1), None),
    (
        DeleteAclsRequest(
            [
                DeleteAclsFilter(2, "test", 2, None, None, 1, 1),
                DeleteAclsFilter(2, None, 4, None, None, 1, 1),
                DeleteAclsFilter(3, None, 1, None, None, 1, 1),
            ]
        ),
        None,
    ),
    (DescribeAclsRequest(1, None, 1, None, None, 1, 1), None),
]


def upsert(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"password")


def users(*names: str) -> Question:
    return DescribeUserScramCredentialsRequest([UserName(name) for name in names]), None


USERS: list[Question] = [
    (AlterUserScramCredentialsRequest([], [upsert("a"), upsert("b", 2, 16_384)]), None),
    (AlterUserScramCredentialsRequest([], [upsert("c"), upsert("c", 2)]), None),
    (AlterUserScramCredentialsRequest([], [upsert(""), upsert("d", 0), upsert("e", 3)]), None),
    (AlterUserScramCredentialsRequest([], [upsert("f", 1, 4095), upsert("g", 1, 16_385)]), None),
    (AlterUserScramCredentialsRequest([ScramCredentialDeletion("none", 1)], []), None),
    (AlterUserScramCredentialsRequest([ScramCredentialDeletion("a", 1)], [upsert("a")]), None),
    (AlterUserScramCredentialsRequest([ScramCredentialDeletion("b", 2)], []), None),
    (AlterUserScramCredentialsRequest(), None),
    users(),
    users("a", "b", "a"),
    users("a", "nobody"),
]


def quota(*entity: tuple[str, str | None], **values: float | None) -> EntryData:
    ops = [OpData(key, 0.0 if v is None else v, v is None) for key, v in values.items()]
    return EntryData([EntityData(*part) for part in entity], ops)


def quotas(*entries: EntryData, **options: Any) -> Question:
    return AlterClientQuotasRequest(list(entries), **options), None


def listed(*components: tuple[str, int, str | None], strict: bool = False) -> Question:
    return DescribeClientQuotasRequest([ComponentData(*c) for c in components], strict), None


A_USER, A_CLIENT = ("user", "a"), ("client-id", "c")
QUOTAS: list[Question] = [
    quotas(quota(A_USER, producer_byte_rate=1.0), quota(A_USER, A_CLIENT, request_percentage=0.5)),
    quotas(quota(("user", None), controller_mutation_rate=1.5)),
    quotas(quota(("ip", "10.0.0.1"), connection_creation_rate=5.0)),
    quotas(quota(("ip", None), connection_creation_rate=5.0)),
    quotas(quota(("ip", "::1"), connection_creation_rate=1.5)),
    quotas(quota(("ip", "10.0.0.1"), A_USER, connection_creation_rate=5.0)),
    quotas(quota(("ip", "10.0.0.1"), producer_byte_rate=5.0)),
    quotas(quota(("group", "g"), producer_byte_rate=1.0)),
    quotas(quota(("user", ""), producer_byte_rate=1.0)),
    quotas(quota(producer_byte_rate=1.0)),
    quotas(quota(A_USER, no_such_key=1.0)),
    quotas(quota(A_USER, producer_byte_rate=-1.0)),
    quotas(quota(A_USER, producer_byte_rate=0.0)),
    quotas(quota(A_USER, producer_byte_rate=1.5)),
    quotas(quota(A_USER, consumer_byte_rate=None)),
    quotas(quota(A_USER, producer_byte_rate=None), validate_only=True),
    quotas(EntryData([EntityData("user", "z")], [OpData("producer_byte_rate", 1.0)] * 2)),
    quotas(),
    listed(),
    listed(strict=True),
    listed(("user", 0, "a")),
    listed(("user", 0, "a"), strict=True),
    listed(("user", 1, None)),
    listed(("user", 2, None)),
    listed(("user", 0, "a"), ("client-id", 2, None)),
    listed(("ip", 2, None)),
    listed(("ip", 2, None), ("user", 2, None)),
    listed(("user", 0, "a"), ("user", 0, "b")),
    listed(("group", 0, "a")),
    listed(("", 0, "a")),
    listed(("user", 3, None)),
]


def feature(name: str, level: int, how: int = 1) -> FeatureUpdateKey:
    return FeatureUpdateKey(name, level, upgrade_type=how)


def updating(*updates: FeatureUpdateKey, version: int | None = None, **options: Any) -> Question:
    return UpdateFeaturesRequest(feature_updates=list(updates), **options), version


FEATURES: list[Question] = [
    updating(feature("metadata.version", 30)),
    updating(feature("metadata.version", 31)),
    updating(feature("metadata.version", 29, 2)),
    updating(feature("metadata.version", 29, 3)),
    updating(feature("metadata.version", 0, 3)),
    updating(feature("group.version", 0)),
    updating(feature("group.version", 0, 2), validate_only=True),
    updating(feature("group.version", 2)),
    updating(feature("group.version", -1)),
    updating(feature("no.such.feature", 1)),
    updating(feature("streams.version", 0, 2)),
    updating(feature("streams.version", 1, 2)),
    updating(feature("streams.version", 1), version=1),
    updating(feature("kraft.version", 0, 2)),
    updating(feature("kraft.version", 2)),
]

DELETIONS: list[Question] = [
    (DeleteTopicsRequest([DeleteTopicState("none"), DeleteTopicState(None, UNKNOWN)]), None),
    (DeleteTopicsRequest([DeleteTopicState(None, ZERO_UUID)]), None),
    (DeleteTopicsRequest([DeleteTopicState("plain", UNKNOWN)]), None),
    (DeleteTopicsRequest([DeleteTopicState("plain"), DeleteTopicState("plain")]), None),
    (DeleteTopicsRequest([DeleteTopicState(None, UNKNOWN)] * 2), None),
    (DeleteTopicsRequest([DeleteTopicState("plain"), DeleteTopicState("none")]), None),
    (DeleteTopicsRequest(topic_names=["first", "none"]), 4),
    (DeleteTopicsRequest(topic_names=["first"]), 1),
    create(topic("first")),
    (UnregisterBrokerRequest(7), None),
]


def patient(question: Question) -> Question:
    """Kafka times out at once on a request without a timeout."""
    message, _ = question
    if isinstance(message, CreatePartitionsRequest | DeleteTopicsRequest):
        message.timeout_ms = 60_000
    return question


_ASKED: list[Question] = [
    *CREATIONS,
    *GROWTH,
    *CONFIGS,
    *PLACES,
    *ACLS,
    *USERS,
    *QUOTAS,
    *FEATURES,
    *DELETIONS,
]
QUESTIONS = [patient(question) for question in _ASKED]
