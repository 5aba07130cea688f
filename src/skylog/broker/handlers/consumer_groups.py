"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: permissions; the coordinator decides."""

from __future__ import annotations

from typing import Final

from skylog.broker.net.context import RequestContext
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from skylog.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

_FEATURE: Final = "group.version"
_FIRST_LEVEL: Final = 1


def _require_protocol(context: RequestContext) -> None:
    services = context.services
    enabled = "consumer" in services.settings.consumer_groups.protocols
    if not enabled or services.features.finalized().get(_FEATURE, 0) < _FIRST_LEVEL:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _describable(context: RequestContext, topic: str) -> bool:
    return context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


async def consumer_group_heartbeat(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Handle ConsumerGroupHeartbeat; members cannot subscribe to topics that they may not
    describe."""
    _require_protocol(context)
    if not context.allowed(request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = set(request.subscribed_topic_names or ())
    if not all(_describable(context, name) for name in names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def may_describe(name: str) -> bool:
        return context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name, audit=False)

    groups = context.services.groups
    return await groups.consumer_group_heartbeat(request, context.group_client(), may_describe)


def consumer_group_heartbeat_failed(
    _: ConsumerGroupHeartbeatRequest, error: KafkaError
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code)


async def consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Handle ConsumerGroupDescribe; each group once, as its answer is longer than its name."""
    _require_protocol(context)
    names = list(dict.fromkeys(request.group_ids))
    request.group_ids = [name for name in names if context.allowed(name)]
    allowed = set(request.group_ids)
    refused = [
        DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name)
        for name in names
        if name not in allowed
    ]
    groups = context.services.groups
    described = await groups.describe_consumer_groups(request, context.group_client())
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = context.authorized_operations(
                    ResourceType.GROUP, group.group_id
                )
    shown = [_shown(context, group) for group in described]
    return ConsumerGroupDescribeResponse(groups=[*refused, *shown])


def _shown(context: RequestContext, group: DescribedGroup) -> DescribedGroup:
    """The group, unless it contains topics that the client may not describe."""
    topics = {
        topic.topic_name
        for member in group.members
        for part in (member.assignment, member.target_assignment)
        for topic in part.topic_partitions
    }
    if all(_describable(context, topic) for topic in topics):
        return group
    return DescribedGroup(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
        group.group_id,
    )


def consumer_group_describe_failed(
    request: ConsumerGroupDescribeRequest, error: KafkaError
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(error.code, group_id=group_id) for group_id in request.group_ids]
    )
