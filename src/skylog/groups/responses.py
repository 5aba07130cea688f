"""Responses of a coordinator that could not ask its machine, and quirks of old versions."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Final

from skylog.groups.offsets import NO_OFFSET
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.delete_groups_response import DeletableGroupResult
from skylog.wire.messages.describe_groups_response import DescribedGroup
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from skylog.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from skylog.wire.messages.offset_commit_request import OffsetCommitRequest
from skylog.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from skylog.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

# The group error code for a failure of the log.
_CLIENT_CODES: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
# OffsetFetch: many topics of one group until 7, many groups from 8.
GROUPS_VERSION: Final = 8
_TOP_LEVEL_ERROR_VERSION: Final = 2
_PROTOCOL_NAME_NULLABLE_VERSION: Final = 7
_LEAVE_MEMBERS_VERSION: Final = 3


def client_code(error: KafkaError) -> ErrorCode:
    return _CLIENT_CODES.get(error.code, error.code)


# JoinGroup


def join_error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def fit_join(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """A missing protocol is null in versions that allow it, and empty before."""
    fitted = copy(response)  # also for resent requests
    nothing = None if version >= _PROTOCOL_NAME_NULLABLE_VERSION else ""
    fitted.protocol_name = response.protocol_name or nothing
    return fitted


# LeaveGroup


def leaving_members(message: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """The request with its ``members`` set, as in later versions."""
    if version >= _LEAVE_MEMBERS_VERSION:
        return message
    return LeaveGroupRequest(message.group_id, members=[MemberIdentity(message.member_id)])


def leave_error(message: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=client_code(error))
    members = [
        MemberResponse(identity.member_id, identity.group_instance_id, error.code)
        for identity in message.members
    ]
    return LeaveGroupResponse(members=members)


def fit_leave(response: LeaveGroupResponse, version: int) -> LeaveGroupResponse:
    """Early versions have only one member, whose error is the response's."""
    if version >= _LEAVE_MEMBERS_VERSION or response.error_code != ErrorCode.NONE:
        return response
    return LeaveGroupResponse(error_code=response.members[0].error_code)


# OffsetCommit


def commit_error(message: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [OffsetCommitResponsePartition(p.partition_index, code) for p in topic.partitions],
        )
        for topic in message.topics
    ]
    return OffsetCommitResponse(topics=topics)


# OffsetFetch


def fetched_groups(message: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """The requested groups, in the format of later versions."""
    if version >= GROUPS_VERSION:
        return message.groups
    topics: list[OffsetFetchRequestTopics] | None = None
    if message.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in message.topics
        ]
    return [OffsetFetchRequestGroup(group_id=message.group_id, topics=topics)]


def fetch_error(
    request: OffsetFetchRequestGroup, code: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    if version >= _TOP_LEVEL_ERROR_VERSION:
        return OffsetFetchResponseGroup(group_id=request.group_id, error_code=code)
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartitions(index, NO_OFFSET, error_code=code)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def fetch_response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= GROUPS_VERSION:
        return OffsetFetchResponse(groups=groups)
    group = groups[0]
    topics = [
        OffsetFetchResponseTopic(topic.name, [_old_partition(p) for p in topic.partitions])
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def _old_partition(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


# DeleteGroups, DescribeGroups


def delete_errors(group_ids: Iterable[str], code: ErrorCode) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id, code) for group_id in group_ids]


def describe_errors(group_ids: Iterable[str], code: ErrorCode) -> list[DescribedGroup]:
    return [DescribedGroup(group_id=group_id, error_code=code) for group_id in group_ids]
