"""Adding partitions to topics."""

from __future__ import annotations

from collections import Counter

from skylog.controller.assignments import assigned_partition, bad_assignment, placed_partitions
from skylog.controller.diskless import with_coordinators
from skylog.controller.draws import Draws
from skylog.controller.image.topics import Topic
from skylog.controller.managed_replicas import check_managed, managed_partitions
from skylog.controller.racks import RackPlacer
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import CONTROLLER_PARTITIONS_PER_REQUEST_MAX
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.replicated.machine import Result
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from skylog.wire.schema import Message


def create_partitions(
    state: ControllerState, request: ControllerRequest, message: CreatePartitionsRequest
) -> Result[CreatePartitionsResponse]:
    counts = Counter(topic.name for topic in message.topics)
    draws, placer = Draws(request.seed), state.rack_placer()
    response = CreatePartitionsResponse()
    records: list[Message] = []
    for name, count in counts.items():
        if count > 1:
            response.results.append(
                CreatePartitionsTopicResult(
                    name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."
                )
            )
    for topic in message.topics:
        if counts[topic.name] > 1:
            continue
        result = CreatePartitionsTopicResult(topic.name)
        try:
            records += _add_partitions(state, request, topic, draws, placer)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        response.results.append(result)
        bounded(records)
    return Result(response, () if message.validate_only else records)


def _add_partitions(
    state: ControllerState,
    request: ControllerRequest,
    wanted: CreatePartitionsTopic,
    draws: Draws,
    placer: RackPlacer,
) -> list[Message]:
    topic = state.image.topic(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    first = len(topic.partitions)
    diskless = topic.diskless_enabled
    if diskless:
        check_managed(assigned=wanted.assignments is not None)
    _check_increase(topic, wanted)
    additional = wanted.count - first
    if additional > CONTROLLER_PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    request.charge(additional)
    replication_factor = len(topic.partitions[0].replicas)
    if diskless:
        partitions = managed_partitions(state, additional, placer)
        partitions = with_coordinators(state, partitions, draws)
    elif wanted.assignments is None:
        partitions = placed_partitions(state, additional, replication_factor, draws)
    else:
        partitions = [
            assigned_partition(state, first + number, assignment.broker_ids, replication_factor)
            for number, assignment in enumerate(wanted.assignments)
        ]
    return [
        found.to_record(topic.topic_id, first + number) for number, found in enumerate(partitions)
    ]


def _check_increase(topic: Topic, wanted: CreatePartitionsTopic) -> None:
    current = len(topic.partitions)
    if topic.name == METADATA_TOPIC:
        # Kafka allows it, and then looks for segments where they were not recorded.
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The number of partitions of {topic.name} says where segments are recorded: "
            "it cannot change.",
        )
    if wanted.count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if wanted.count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {wanted.count} would "
            "not be an increase.",
        )
    if wanted.assignments is not None and len(wanted.assignments) != wanted.count - current:
        raise bad_assignment(
            f"Attempted to add {wanted.count - current} additional partition(s), but "
            f"{len(wanted.assignments)} assignment(s) were specified."
        )
