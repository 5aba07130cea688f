"""Reports of leaders about their partitions: the ISR, and the directory of a replica."""

from __future__ import annotations

from skylog.controller.image.topics import NO_LEADER_CHANGE, RECOVERED, RECOVERING, Partition, Topic
from skylog.controller.partition_change import Election
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState
from skylog.kernel.errors import ErrorCode
from skylog.replicated.machine import Result
from skylog.wire.messages import (
    alter_partition_response,
    assign_replicas_to_dirs_response,
)
from skylog.wire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
)
from skylog.wire.messages.alter_partition_response import AlterPartitionResponse
from skylog.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from skylog.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from skylog.wire.schema import Message


def alter_partition(
    state: ControllerState, request: ControllerRequest, message: AlterPartitionRequest
) -> Result[AlterPartitionResponse]:
    state.broker_of_epoch(message.broker_id, message.broker_epoch)
    response = AlterPartitionResponse()
    records: list[Message] = []
    for wanted in message.topics:
        answer = alter_partition_response.TopicData(wanted.topic_id)
        response.topics.append(answer)
        topic = state.image.topic_by_id(wanted.topic_id)
        for data in wanted.partitions:
            isr = data.new_isr_with_epochs if request.version >= 3 else _without_epochs(data)
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                code = _refusal(state, message.broker_id, topic, data, isr)
            if topic is None or code is not ErrorCode.NONE:
                answer.partitions.append(
                    alter_partition_response.PartitionData(data.partition_index, code)
                )
                continue
            answer.partitions.append(_alter(state, message.broker_id, topic, data, isr, records))
    return Result(response, records)


def _without_epochs(data: PartitionData) -> list[BrokerState]:
    return [BrokerState(broker_id) for broker_id in data.new_isr]


def _alter(
    state: ControllerState,
    leader: int,
    topic: Topic,
    data: PartitionData,
    isr: list[BrokerState],
    records: list[Message],
) -> alter_partition_response.PartitionData:
    index = data.partition_index
    change = state.change(topic, index)
    if state.unclean_election(topic.name):
        change.election = Election.UNCLEAN
    change.isr = [member.broker_id for member in isr]
    change.leader_recovery_state = data.leader_recovery_state
    record = change.build()
    partition = topic.partitions[index]
    if record is not None:
        records.append(record)
        partition = partition.merge(record)
        if record.leader not in (leader, NO_LEADER_CHANGE):
            # The ISR completed a reassignment that moved the leader: it must refresh its state.
            return alter_partition_response.PartitionData(index, ErrorCode.NEW_LEADER_ELECTED)
    return alter_partition_response.PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _refusal(
    state: ControllerState,
    leader: int,
    topic: Topic,
    data: PartitionData,
    isr: list[BrokerState],
) -> ErrorCode:
    """NONE if the report is acceptable. A leader with a newer epoch than ours is not in our log."""
    partition = topic.partitions.get(data.partition_index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.is_pure:
        return ErrorCode.INVALID_REQUEST  # the ISR follows from which brokers are alive
    ahead = (
        data.leader_epoch > partition.leader_epoch
        or data.partition_epoch > partition.partition_epoch
    )
    if ahead:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_isr(partition, data, [member.broker_id for member in isr]):
        return ErrorCode.INVALID_REQUEST
    if not all(_may_be_in_sync(state, member) for member in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_isr(partition: Partition, data: PartitionData, isr: list[int]) -> bool:
    """Distinct replicas including the leader; only the leader while it recovers."""
    recovery = data.leader_recovery_state
    return (
        partition.leader in isr
        and set(isr) <= set(partition.replicas)
        and len(set(isr)) == len(isr)
        and recovery in (RECOVERED, RECOVERING)
        and not (recovery == RECOVERING and len(isr) > 1)
        and not (recovery == RECOVERING and partition.leader_recovery_state == RECOVERED)
    )


def _may_be_in_sync(state: ControllerState, member: BrokerState) -> bool:
    broker = state.image.broker(member.broker_id)
    return broker is not None and broker.active and member.broker_epoch in (-1, broker.epoch)


def assign_replicas_to_dirs(
    state: ControllerState, _request: ControllerRequest, message: AssignReplicasToDirsRequest
) -> Result[AssignReplicasToDirsResponse]:
    """A replica in a directory that the broker has lost leaves the ISR."""
    broker = state.broker_of_epoch(message.broker_id, message.broker_epoch)
    response = AssignReplicasToDirsResponse()
    records: list[Message] = []
    offline: dict[tuple[bytes, int], tuple[Topic, int]] = {}
    for directory in message.directories:
        answer = assign_replicas_to_dirs_response.DirectoryData(directory.id)
        response.directories.append(answer)
        for wanted in directory.topics:
            results = assign_replicas_to_dirs_response.TopicData(wanted.topic_id)
            answer.topics.append(results)
            topic = state.image.topic_by_id(wanted.topic_id)
            for data in wanted.partitions:
                index = data.partition_index
                code = _assignment_refusal(topic, index, broker.broker_id)
                results.partitions.append(
                    assign_replicas_to_dirs_response.PartitionData(index, code)
                )
                if topic is None or code is not ErrorCode.NONE:
                    continue
                change = state.change(topic, index)
                change.directories[broker.broker_id] = directory.id
                record = change.build()
                if record is not None:
                    records.append(record)
                if not broker.has_online_directory(directory.id):
                    offline[(topic.topic_id, index)] = (topic, index)
    records += state.updates(offline.values(), removed=broker.broker_id)
    return Result(response, records)


def _assignment_refusal(topic: Topic | None, index: int, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
