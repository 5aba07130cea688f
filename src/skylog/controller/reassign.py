"""Moving partitions to other brokers (KIP-455).

A reassignment first adds the new replicas and records those being added and removed; when the added
ones are in sync, the removed ones are dropped. One without new replicas completes at once, and so
does that of a diskless partition, whose replicas have nothing to copy.
"""

from __future__ import annotations

from collections import Counter

from skylog.controller.assignments import check_assignment
from skylog.controller.image.topics import Partition, Topic
from skylog.controller.managed_replicas import move_replicas, placement_notes
from skylog.controller.partition_change import Election
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Note, Result
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from skylog.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from skylog.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from skylog.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.schema import Message


def alter_partition_reassignments(
    state: ControllerState,
    _request: ControllerRequest,
    message: AlterPartitionReassignmentsRequest,
) -> Result[AlterPartitionReassignmentsResponse]:
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=message.allow_replication_factor_change,
        error_message=None if message.topics else "",
    )
    # Each of two changes of one partition would invalidate the other.
    named = Counter(
        (topic.name, wanted.partition_index)
        for topic in message.topics
        for wanted in topic.partitions
    )
    records: list[Message] = []
    notes: list[Note] = []
    for topic in message.topics:
        answer = ReassignableTopicResponse(topic.name)
        response.responses.append(answer)
        for wanted in topic.partitions:
            result = ReassignablePartitionResponse(wanted.partition_index, 0, None)
            answer.partitions.append(result)
            try:
                if named[(topic.name, wanted.partition_index)] > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, "Each partition must appear at most once."
                    )
                record = _alter(
                    state, topic.name, wanted, message.allow_replication_factor_change, notes
                )
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
                continue
            if record is not None:
                records.append(record)
    return Result(response, bounded(records), effects=notes)


def _alter(
    state: ControllerState,
    name: str,
    wanted: ReassignablePartition,
    factor_may_change: bool,
    notes: list[Note],
) -> PartitionChangeRecord | None:
    topic = state.image.topic(name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    index = wanted.partition_index
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    if wanted.replicas is None:
        return _cancel(state, topic, index, partition)
    check_assignment(state, wanted.replicas)
    if not factor_may_change:
        _check_factor(partition, wanted.replicas)
    if partition.is_pure:
        record = move_replicas(state, topic, index, wanted.replicas)
        if record is not None:
            notes += placement_notes(state, topic, index, wanted.replicas)
        return record
    return _start(state, topic, index, partition, wanted.replicas)


def _start(
    state: ControllerState, topic: Topic, index: int, partition: Partition, target: list[int]
) -> PartitionChangeRecord | None:
    """Replicas that an earlier reassignment is still adding already count as replicas."""
    current = set(partition.replicas)
    removing = sorted(current - set(target))
    adding = sorted(set(target) - current)
    change = state.change(topic, index)
    change.replicas = [*target, *removing]
    # As in Kafka, a target without new replicas leaves the current reassignment unchanged.
    change.removing = removing or change.removing
    change.adding = adding or change.adding
    return change.build()


def _cancel(
    state: ControllerState, topic: Topic, index: int, partition: Partition
) -> PartitionChangeRecord | None:
    if not partition.reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    adding = partition.adding_replicas
    replicas = [replica for replica in partition.replicas if replica not in adding]
    isr = [replica for replica in partition.isr if replica not in adding]
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "There are no replicas to go back to."
        )
    unclean_allowed = state.unclean_election(topic.name)
    if not isr:
        if not unclean_allowed:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert the assignment of {topic.name}:{index}: it would require an "
                "unclean leader election.",
            )
        isr = [replicas[0]]
    change = state.change(topic, index)
    if unclean_allowed:
        change.election = Election.UNCLEAN
    change.isr, change.replicas = isr, replicas
    change.removing, change.adding = [], []
    return change.build()


def _check_factor(partition: Partition, target: list[int]) -> None:
    settled = set(partition.replicas) - set(partition.removing_replicas)
    if len(settled) != len(target):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(settled)} to {len(target)}",
        )


def list_partition_reassignments(
    state: ControllerState, _request: ControllerRequest, message: ListPartitionReassignmentsRequest
) -> Result[ListPartitionReassignmentsResponse]:
    response = ListPartitionReassignmentsResponse(error_message=None)
    for topic, indexes in _asked_for(state, message):
        ongoing = [
            OngoingPartitionReassignment(
                index,
                list(partition.replicas),
                list(partition.adding_replicas),
                list(partition.removing_replicas),
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and partition.reassigning
        ]
        if ongoing:
            response.topics.append(OngoingTopicReassignment(topic.name, ongoing))
    return Result(response)


def _asked_for(
    state: ControllerState, message: ListPartitionReassignmentsRequest
) -> list[tuple[Topic, list[int]]]:
    image = state.image
    if message.topics is None:
        by_topic: dict[bytes, tuple[Topic, list[int]]] = {}
        for topic_id, index in image.topics.reassigning:
            by_topic.setdefault(topic_id, (image.topics.by_id[topic_id], []))[1].append(index)
        return list(by_topic.values())
    return [
        (topic, asked.partition_indexes)
        for asked in message.topics
        if (topic := image.topic(asked.name)) is not None
    ]
