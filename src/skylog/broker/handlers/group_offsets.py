"""OffsetFetch: one group or many, by topic name or id."""

from __future__ import annotations

from skylog.broker.net.context import RequestContext
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID
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

FIRST_WITH_GROUPS = 8
FIRST_WITH_GROUP_ERROR = 2
FIRST_WITH_TOPIC_IDS = 10


async def offset_fetch(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Handle OffsetFetch; each group once, since its answer is much longer than its name."""
    if context.version >= FIRST_WITH_GROUPS:
        answers: dict[str, OffsetFetchResponseGroup] = {}
        again = []
        for group in request.groups:
            if group.group_id in answers:
                again.append(_failed(context, group, ErrorCode.INVALID_REQUEST))
            else:
                answers[group.group_id] = await _group(context, group, request.require_stable)
        return OffsetFetchResponse(groups=[*answers.values(), *again])
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = OffsetFetchRequestGroup(request.group_id, topics=topics)
    return _single(context, await _group(context, group, request.require_stable))


def _single(context: RequestContext, answer: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The response of versions with a single group."""
    response = OffsetFetchResponse(error_code=answer.error_code)
    for topic in answer.topics:
        partitions = [
            OffsetFetchResponsePartition(
                p.partition_index,
                p.committed_offset,
                p.committed_leader_epoch,
                p.metadata,
                p.error_code,
            )
            for p in topic.partitions
        ]
        response.topics.append(OffsetFetchResponseTopic(topic.name, partitions))
    return response


async def _group(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    services = context.services
    if not context.allowed(group.group_id):
        return _failed(context, group, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[OffsetFetchResponseTopics] = []
    asked = group
    if group.topics is not None:
        asked, refused = _permitted(context, group)
    answer = await services.groups.fetch_offsets(
        asked, context.group_client(), require_stable=require_stable
    )
    if answer.error_code:
        return _failed(context, group, ErrorCode(answer.error_code))
    if group.topics is None:
        answer.topics = [t for t in answer.topics if _describable(context, t.name)]
    if context.version >= FIRST_WITH_TOPIC_IDS:
        _fill_ids(context, answer)
    answer.topics += refused
    return answer


def _permitted(
    context: RequestContext, group: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, list[OffsetFetchResponseTopics]]:
    refused, asked = [], []
    for topic in group.topics or ():
        if context.version >= FIRST_WITH_TOPIC_IDS:
            topic.name = context.services.image.topic_name(topic.topic_id) or ""
            if not topic.name:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
        if _describable(context, topic.name):
            asked.append(topic)
        else:
            refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    permitted = OffsetFetchRequestGroup(group.group_id, group.member_id, group.member_epoch, asked)
    return permitted, refused


def _describable(context: RequestContext, topic: str) -> bool:
    return context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


def _refused(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(index, -1, -1, "", code) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _fill_ids(context: RequestContext, answer: OffsetFetchResponseGroup) -> None:
    """A deleted topic has no id, and so no entry in the response."""
    for topic in answer.topics:
        known = context.services.image.topic(topic.name)
        topic.topic_id = known.topic_id if known is not None else ZERO_UUID
    answer.topics = [topic for topic in answer.topics if topic.topic_id != ZERO_UUID]


def _failed(
    context: RequestContext, group: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """An error of a whole group; the oldest version can only return it in each partition."""
    answer = OffsetFetchResponseGroup(group.group_id, error_code=code)
    if context.version < FIRST_WITH_GROUP_ERROR:
        answer.topics = [_refused(topic, code) for topic in group.topics or ()]
    return answer
