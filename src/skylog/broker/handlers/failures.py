"""Responses to requests that failed as a whole, for APIs whose response has no field for that.

Kafka then repeats the error for each item that the request named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skylog.kernel.errors import KafkaError
from skylog.wire.messages import (
    alter_client_quotas_response,
    alter_configs_response,
    alter_partition_reassignments_response,
    alter_user_scram_credentials_response,
    delete_records_response,
    describe_client_quotas_response,
    describe_configs_response,
    describe_groups_response,
    describe_producers_response,
    describe_user_scram_credentials_response,
    elect_leaders_response,
    fetch_response,
    incremental_alter_configs_response,
    list_offsets_response,
    list_partition_reassignments_response,
    offset_fetch_response,
    offset_for_leader_epoch_response,
    produce_response,
)
from skylog.wire.schema import Message


def _message(error: KafkaError) -> str:
    return error.message or error.code.name


def produce(request: Any, error: KafkaError) -> Message:
    module = produce_response
    return module.ProduceResponse(
        responses=[
            module.TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    module.PartitionProduceResponse(p.index, error.code, base_offset=-1)
                    for p in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def list_offsets(request: Any, error: KafkaError) -> Message:
    module = list_offsets_response
    return module.ListOffsetsResponse(
        topics=[
            module.ListOffsetsTopicResponse(
                topic.name,
                [
                    module.ListOffsetsPartitionResponse(p.partition_index, error.code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def offset_for_leader_epoch(request: Any, error: KafkaError) -> Message:
    module = offset_for_leader_epoch_response
    return module.OffsetForLeaderEpochResponse(
        topics=[
            module.OffsetForLeaderTopicResult(
                topic.topic,
                [module.EpochEndOffset(error.code, p.partition) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def delete_records(request: Any, error: KafkaError) -> Message:
    module = delete_records_response
    return module.DeleteRecordsResponse(
        topics=[
            module.DeleteRecordsTopicResult(
                topic.name,
                [
                    module.DeleteRecordsPartitionResult(p.partition_index, -1, error.code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def describe_producers(request: Any, error: KafkaError) -> Message:
    module = describe_producers_response
    return module.DescribeProducersResponse(
        topics=[
            module.TopicResponse(
                topic.name,
                [
                    module.PartitionResponse(index, error.code, _message(error))
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def describe_groups(request: Any, error: KafkaError) -> Message:
    module = describe_groups_response
    return module.DescribeGroupsResponse(
        groups=[module.DescribedGroup(error.code, group_id=group) for group in request.groups]
    )


def fetch(request: Any, error: KafkaError) -> Message:
    """Clients of old versions look only at the partitions; new versions have the error once."""
    module = fetch_response
    return module.FetchResponse(
        error_code=error.code,
        responses=[
            module.FetchableTopicResponse(
                topic.topic,
                partitions=[
                    module.PartitionData(part.partition, error.code, -1, records=b"")
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.topic
        ],
    )


def offset_fetch(request: Any, error: KafkaError) -> Message:
    module = offset_fetch_response
    return module.OffsetFetchResponse(
        error_code=error.code if not request.groups else 0,
        groups=[
            module.OffsetFetchResponseGroup(group.group_id, error_code=error.code)
            for group in request.groups
        ],
    )


def _each_resource(result: type[Any], request: Any, error: KafkaError) -> Iterable[Any]:
    for resource in request.resources:
        yield result(error.code, _message(error), resource.resource_type, resource.resource_name)


def describe_configs(request: Any, error: KafkaError) -> Message:
    module = describe_configs_response
    results = _each_resource(module.DescribeConfigsResult, request, error)
    return module.DescribeConfigsResponse(results=list(results))


def alter_configs(request: Any, error: KafkaError) -> Message:
    module = alter_configs_response
    results = _each_resource(module.AlterConfigsResourceResponse, request, error)
    return module.AlterConfigsResponse(responses=list(results))


def incremental_alter_configs(request: Any, error: KafkaError) -> Message:
    module = incremental_alter_configs_response
    results = _each_resource(module.AlterConfigsResourceResponse, request, error)
    return module.IncrementalAlterConfigsResponse(responses=list(results))


def alter_client_quotas(request: Any, error: KafkaError) -> Message:
    module = alter_client_quotas_response
    return module.AlterClientQuotasResponse(
        entries=[
            module.EntryData(
                error.code,
                _message(error),
                [module.EntityData(part.entity_type, part.entity_name) for part in entry.entity],
            )
            for entry in request.entries
        ]
    )


def alter_user_scram_credentials(request: Any, error: KafkaError) -> Message:
    module = alter_user_scram_credentials_response
    users = dict.fromkeys(change.name for change in [*request.deletions, *request.upsertions])
    return module.AlterUserScramCredentialsResponse(
        results=[
            module.AlterUserScramCredentialsResult(user, error.code, _message(error))
            for user in users
        ]
    )


def describe_client_quotas(_: Any, error: KafkaError) -> Message:
    module = describe_client_quotas_response
    return module.DescribeClientQuotasResponse(
        error_code=error.code, error_message=_message(error), entries=None
    )


def describe_user_scram_credentials(request: Any, error: KafkaError) -> Message:
    """Kafka returns the error for the whole request, and once more for each user, without its
    name."""
    module = describe_user_scram_credentials_response
    return module.DescribeUserScramCredentialsResponse(
        error_code=error.code,
        error_message=_message(error),
        results=[
            module.DescribeUserScramCredentialsResult("", error.code, _message(error))
            for _ in request.users or ()
        ],
    )


def elect_leaders(request: Any, error: KafkaError) -> Message:
    module = elect_leaders_response
    return module.ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            module.ReplicaElectionResult(
                topic.topic,
                [
                    module.PartitionResult(index, error.code, _message(error))
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def alter_partition_reassignments(request: Any, error: KafkaError) -> Message:
    module = alter_partition_reassignments_response
    return module.AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=_message(error),
        responses=[
            module.ReassignableTopicResponse(
                topic.name,
                [
                    module.ReassignablePartitionResponse(
                        p.partition_index, error.code, _message(error)
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def list_partition_reassignments(request: Any, error: KafkaError) -> Message:
    module = list_partition_reassignments_response
    return module.ListPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=_message(error),
        topics=[
            module.OngoingTopicReassignment(
                topic.name,
                [module.OngoingPartitionReassignment(index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )
