"""Every API in every offered version gets a response of that version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skylog.broker.net.table import broker_table, controller_table
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.testing import Broker
from skylog.wire.apis import ApiKey, request_class
from skylog.wire.messages import (
    delete_topics_request,
    describe_configs_request,
    describe_quorum_request,
    fetch_request,
    list_offsets_request,
    metadata_request,
    offset_commit_request,
    offset_fetch_request,
    offset_for_leader_epoch_request,
    produce_request,
)
from tests.integration.broker_client import Client, batch


@pytest.fixture(scope="module")
def topic_id(broker: Broker) -> Uuid:
    with Client(broker.bootstrap) as client:
        found = client.create("t")
        client.produce("t", b"x")
        client.metadata("__consumer_offsets", create=True)
    return found


def empty(key: ApiKey, version: int) -> Any:
    request: Any = request_class(key)()
    if key is ApiKey.PRODUCE:
        request.acks = 1  # without acks there is no response
    if key is ApiKey.DESCRIBE_ACLS:  # a filter has no empty kinds, only kinds that match all
        request.resource_type_filter = request.operation = request.permission_type = 1
    return request


@pytest.mark.parametrize("key", sorted(broker_table()), ids=lambda key: key.name.lower())
def test_empty_requests(broker: Broker, topic_id: Uuid, key: ApiKey) -> None:
    versions = broker_table()[key].versions
    with Client(broker.bootstrap) as client:
        for version in range(versions.low, versions.high + 1):
            client.ask(empty(key, version), version)


@pytest.mark.parametrize("key", sorted(controller_table()), ids=lambda key: key.name.lower())
def test_empty_requests_to_a_controller(broker: Broker, key: ApiKey) -> None:
    versions = controller_table()[key].versions
    with Client(broker.address("CONTROLLER")) as client:
        for version in range(versions.low, versions.high + 1):
            client.ask(empty(key, version), version)


def produce(version: int, topic_id: Uuid) -> Any:
    module = produce_request
    parts = [module.PartitionProduceData(index, batch(b"x")) for index in (0, 7)]
    named = ("", topic_id) if version >= 13 else ("t", ZERO_UUID)
    return module.ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[module.TopicProduceData(*named, parts)]
    )


def fetch(version: int, topic_id: Uuid) -> Any:
    module = fetch_request
    parts = [
        module.FetchPartition(index, fetch_offset=offset, partition_max_bytes=1000)
        for index, offset in ((0, 0), (7, 0))
    ]
    named = ("", topic_id) if version >= 13 else ("t", ZERO_UUID)
    return module.FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=[module.FetchTopic(*named, parts)]
    )


def fetch_from_a_past_leader(version: int, topic_id: Uuid) -> Any:
    request = fetch(version, topic_id)
    if version >= 9:
        request.topics[0].partitions[0].current_leader_epoch = 9
    return request


def list_offsets(version: int, topic_id: Uuid) -> Any:
    module = list_offsets_request
    parts = [module.ListOffsetsPartition(index, -1, -1) for index in (0, 7)]
    return module.ListOffsetsRequest(replica_id=-1, topics=[module.ListOffsetsTopic("t", parts)])


def metadata(version: int, topic_id: Uuid) -> Any:
    module = metadata_request
    topics = [module.MetadataRequestTopic(ZERO_UUID, name) for name in ("t", "nobody's", "a b")]
    request = module.MetadataRequest(topics)
    if version >= 4:
        request.allow_auto_topic_creation = False
    return request


def leader_epochs(version: int, topic_id: Uuid) -> Any:
    module = offset_for_leader_epoch_request
    parts = [module.OffsetForLeaderPartition(index, -1, 0) for index in (0, 7)]
    topic = module.OffsetForLeaderTopic("t", parts)
    return module.OffsetForLeaderEpochRequest(topics=[topic])


def commit(version: int, topic_id: Uuid) -> Any:
    module = offset_commit_request
    parts = [module.OffsetCommitRequestPartition(index, 5, -1, "m") for index in (0, 7)]
    named = ("", topic_id) if version >= 10 else ("t", ZERO_UUID)
    topic = module.OffsetCommitRequestTopic(*named, parts)
    return module.OffsetCommitRequest(f"g{version}", -1, "", None, -1, [topic])


def committed(version: int, topic_id: Uuid) -> Any:
    module = offset_fetch_request
    named = ("", topic_id) if version >= 10 else ("t", ZERO_UUID)
    if version >= 8:
        topics = [module.OffsetFetchRequestTopics(*named, [0, 7])]
        group = module.OffsetFetchRequestGroup("g", None, -1, topics)
        return module.OffsetFetchRequest(groups=[group])
    return module.OffsetFetchRequest("g", [module.OffsetFetchRequestTopic("t", [0, 7])])


def configs(version: int, topic_id: Uuid) -> Any:
    module = describe_configs_request
    resources = [
        module.DescribeConfigsResource(kind, name, None)
        for kind, name in ((2, "t"), (2, "nobody"), (4, "1"), (4, ""), (8, "1"), (99, "?"))
    ]
    return module.DescribeConfigsRequest(resources)


def delete_unknown(version: int, topic_id: Uuid) -> Any:
    module = delete_topics_request
    if version >= 6:
        states = [module.DeleteTopicState("nobody", ZERO_UUID)]
        return module.DeleteTopicsRequest(topics=states, timeout_ms=1000)
    return module.DeleteTopicsRequest(topic_names=["nobody"], timeout_ms=1000)


def describe_quorum(version: int, topic_id: Uuid) -> Any:
    module = describe_quorum_request
    topic = module.TopicData("__cluster_metadata", [module.PartitionData(0)])
    return module.DescribeQuorumRequest([topic])


def describe_other_quorum(version: int, topic_id: Uuid) -> Any:
    module = describe_quorum_request
    return module.DescribeQuorumRequest([module.TopicData("t", [module.PartitionData(0)])])


QUESTIONS = [
    produce,
    fetch,
    fetch_from_a_past_leader,
    list_offsets,
    metadata,
    leader_epochs,
    commit,
    committed,
    configs,
    delete_unknown,
    describe_quorum,
    describe_other_quorum,
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_requests_with_good_and_bad_parts(
    broker: Broker, topic_id: Uuid, question: Callable[[int, Uuid], Any]
) -> None:
    row = broker_table()[ApiKey(question(9, topic_id).API_KEY)]
    with Client(broker.bootstrap) as client:
        for version in range(row.versions.low, row.versions.high + 1):
            client.ask(question(version, topic_id), version)


def test_the_quorum_is_described_in_every_version(broker: Broker) -> None:
    with Client(broker.bootstrap) as client:
        for version in (0, 1, 2):
            answer = client.ask(describe_quorum(version, ZERO_UUID), version)
            partition = answer.topics[0].partitions[0]
            assert (partition.error_code, partition.leader_id) == (0, 1)
            assert [voter.replica_id for voter in partition.current_voters] == [1]
            assert bool(answer.nodes) == (version >= 2)
            answer = client.ask(describe_other_quorum(version, ZERO_UUID), version)
            code = answer.topics[0].partitions[0].error_code
            assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
