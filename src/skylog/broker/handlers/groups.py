"""Consumer groups and their offsets: permissions here, decisions in the coordinator.

Topic ids of newer versions are turned into names for the coordinator, and back for the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from skylog.broker.net.context import RequestContext
from skylog.groups.responses import fit_join
from skylog.kernel import limits
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import CONSUMER_OFFSETS, DISKLESS_METADATA, TRANSACTION_STATE
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.heartbeat_response import HeartbeatResponse
from skylog.wire.messages.join_group_request import JoinGroupRequest
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.leave_group_request import LeaveGroupRequest
from skylog.wire.messages.leave_group_response import LeaveGroupResponse
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_groups_response import ListGroupsResponse
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skylog.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
)
from skylog.wire.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from skylog.wire.messages.sync_group_request import SyncGroupRequest
from skylog.wire.messages.sync_group_response import SyncGroupResponse

GROUP = 0
TRANSACTION = 1
DISKLESS = 100  # our own type, used between brokers


def _require(context: RequestContext, group_id: str) -> None:
    if not context.allowed(group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)


async def join_group(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    if not context.allowed(request.group_id):
        refusal = JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return fit_join(refusal, context.version)
    return await context.services.groups.join_group(request, context.group_client())


async def sync_group(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    if context.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    _require(context, request.group_id)
    return await context.services.groups.sync_group(request, context.group_client())


async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    _require(context, request.group_id)
    return await context.services.groups.heartbeat(request, context.group_client())


async def leave_group(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    _require(context, request.group_id)
    return await context.services.groups.leave_group(request, context.group_client())


async def describe_groups(
    context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Handle DescribeGroups; each group once, since its answer is much longer than its name."""
    response = DescribeGroupsResponse()
    allowed = []
    for group_id in dict.fromkeys(request.groups):
        if context.allowed(group_id):
            allowed.append(group_id)
        else:
            response.groups.append(
                DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
            )
    request.groups = allowed
    described = await context.services.groups.describe_groups(request, context.group_client())
    if request.include_authorized_operations:
        for group in described.groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = context.authorized_operations(
                    ResourceType.GROUP, group.group_id
                )
    response.groups += described.groups
    return response


async def list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    response = await context.services.groups.list_groups(request, context.group_client())
    if not context.authorize_cluster(AclOperation.DESCRIBE, audit=False):
        response.groups = [
            group
            for group in response.groups
            if context.authorize(
                AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id, audit=False
            )
        ]
    return response


async def delete_groups(
    context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    names = list(dict.fromkeys(request.groups_names))
    request.groups_names = [name for name in names if context.allowed(name)]
    allowed = set(request.groups_names)
    response = await context.services.groups.delete_groups(request, context.group_client())
    response.results += [
        DeletableGroupResult(name, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for name in names
        if name not in allowed
    ]
    return response


async def offset_commit(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    _require(context, request.group_id)
    image = context.services.image
    refused: list[OffsetCommitResponseTopic] = []
    accepted = []
    by_id = context.version >= 10
    for topic in request.topics:
        if by_id:
            topic.name = image.topic_name(topic.topic_id) or ""
        code = _topic_error(context, topic.name, by_id)
        known = image.topic(topic.name)
        if code is not None or known is None:
            refused.append(_refused_commit(topic, code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        valid = [p for p in topic.partitions if p.partition_index in known.partitions]
        invalid = [p for p in topic.partitions if p.partition_index not in known.partitions]
        if invalid:
            wrong = OffsetCommitRequestTopic(topic.name, topic.topic_id, invalid)
            refused.append(_refused_commit(wrong, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if valid:
            accepted.append(OffsetCommitRequestTopic(topic.name, known.topic_id, valid))
    response = OffsetCommitResponse()
    _merge_commit(response, refused)
    if accepted:
        request.topics = accepted
        committed = await context.services.groups.offset_commit(request, context.group_client())
        _merge_commit(response, committed.topics)
    return response


def _topic_error(context: RequestContext, name: str, by_id: bool) -> ErrorCode | None:
    if by_id and not name:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not context.authorize(AclOperation.READ, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None


def _refused_commit(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    refused = [OffsetCommitResponsePartition(p.partition_index, code) for p in topic.partitions]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, refused)


def _merge_commit(
    response: OffsetCommitResponse, topics: Iterable[OffsetCommitResponseTopic]
) -> None:
    """Each topic appears once in a response, whatever happened to its partitions."""
    present = {(topic.name, topic.topic_id): topic for topic in response.topics}
    for topic in topics:
        known = present.setdefault((topic.name, topic.topic_id), topic)
        if known is not topic:
            known.partitions += topic.partitions
    response.topics = list(present.values())


def offset_commit_failed(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    response = OffsetCommitResponse()
    _merge_commit(response, (_refused_commit(topic, error.code) for topic in request.topics))
    return response


async def offset_delete(
    context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    _require(context, request.group_id)
    refused: list[OffsetDeleteResponseTopic] = []
    accepted = []
    for topic in request.topics:
        code = _topic_error(context, topic.name, by_id=False)
        known = context.services.image.topic(topic.name)
        partitions = known.partitions if known is not None and code is None else {}
        wrong = [p for p in topic.partitions if p.partition_index not in partitions]
        if wrong:
            code = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answers = [OffsetDeleteResponsePartition(p.partition_index, code) for p in wrong]
            refused.append(OffsetDeleteResponseTopic(topic.name, answers))
        valid = [p for p in topic.partitions if p.partition_index in partitions]
        if valid:
            accepted.append(OffsetDeleteRequestTopic(topic.name, valid))
    request.topics = accepted
    response = await context.services.groups.offset_delete(request, context.group_client())
    if not response.error_code:
        present = {topic.name: topic for topic in response.topics}
        for answer in refused:
            same = present.setdefault(answer.name, answer)
            if same is not answer:
                same.partitions += answer.partitions
        response.topics = list(present.values())
    return response


async def find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Handle FindCoordinator; the internal topic is created on the first request."""
    if context.version >= 4:
        found = []
        for number, key in enumerate(request.coordinator_keys, 1):
            found.append(await _coordinator(context, request.key_type, key))
            if number % limits.ANSWERS_PER_TURN == 0:
                await asyncio.sleep(0)  # yield to other tasks
        return FindCoordinatorResponse(error_message=None, coordinators=found)
    one = await _coordinator(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or ErrorCode.NONE.name,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _coordinator(context: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        if key_type == TRANSACTION:
            if not context.authorize(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            index = context.services.transactions.partition_for(key)
            return await _leader(context, TRANSACTION_STATE, index, key)
        if key_type == DISKLESS:
            return _diskless_coordinator(context, key)
        if key_type != GROUP:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {key_type}.")
        if not context.allowed(key):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        index = context.services.groups.partition_for(key)
        return await _leader(context, CONSUMER_OFFSETS, index, key)
    except KafkaError as error:
        message = error.message or error.code.name
        return Coordinator(key, -1, "", -1, error.code, message)


def _diskless_coordinator(context: RequestContext, key: str) -> Coordinator:
    """The leader of a partition of the coordinators' topic; the key is its number."""
    if not context.authorize_cluster(AclOperation.CLUSTER_ACTION):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not key.isascii() or not key.isdigit() or len(key) > 9:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} is not a coordinator number.")
    image = context.services.image
    state = image.partition(DISKLESS_METADATA, int(key))
    if state is not None:
        for node in image.endpoints([state.leader], context.listener):
            return Coordinator(key, node.id, node.host, node.port, error_message="")
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def _leader(context: RequestContext, topic: str, index: int, key: str) -> Coordinator:
    """The leader of the partition of an internal topic that has the key."""
    services = context.services
    if services.image.topic(topic) is None:
        await services.auto_create.create([topic])
    state = services.image.partition(topic, index)
    if state is not None:
        for node in services.image.endpoints([state.leader], context.listener):
            return Coordinator(key, node.id, node.host, node.port, error_message="")
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
