"""Metadata, DescribeTopicPartitions, DescribeCluster: how a client finds the leaders."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from skylog.broker.handlers.cluster import BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS
from skylog.broker.handlers.metadata_view import ClientView, partition_as_it_is
from skylog.broker.net.context import RequestContext
from skylog.kernel import limits
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.topics import is_internal, topic_name_fault
from skylog.security.acls import CLUSTER_NAME
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from skylog.wire.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
)
from skylog.wire.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from skylog.wire.messages.metadata_request import MetadataRequest
from skylog.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)


def metadata(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """Handle a Metadata request; missing topics that may be auto-created are created first."""
    _check_topics(context, request)
    response = MetadataResponse(cluster_id=context.services.cluster_id)
    if _wants_all(context, request):
        names = [
            name
            for name in context.services.image.topic_names()
            if context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name, audit=False)
        ]
        return _finish(context, request, response, names)
    wanted = request.topics or []
    ids = {topic.topic_id for topic in wanted} - {ZERO_UUID}
    if ids:
        return _finish(context, request, response, _by_id(context, response, ids))
    names, missing = _by_name(
        context, request, response, dict.fromkeys(t.name or "" for t in wanted)
    )
    if missing:
        return _create(context, request, response, names, missing)
    return _finish(context, request, response, names)


def _check_topics(context: RequestContext, request: MetadataRequest) -> None:
    if context.version >= 12:
        return
    for topic in request.topics or ():
        if topic.name is None or topic.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Topics are requested by name before version 12."
            )


def _wants_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def _by_id(context: RequestContext, response: MetadataResponse, ids: Iterable[Uuid]) -> list[str]:
    names = []
    for topic_id in ids:
        name = context.services.image.topic_name(topic_id)
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif context.allowed(name):
            names.append(name)
            continue
        else:  # the client knows the id already; the name stays hidden
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.topics.append(MetadataResponseTopic(code, None, topic_id))
    return names


def _by_name(
    context: RequestContext,
    request: MetadataRequest,
    response: MetadataResponse,
    wanted: Iterable[str],
) -> tuple[list[str], list[str]]:
    """The topics to show, and those to create first."""
    image = context.services.image
    creates = request.allow_auto_topic_creation and context.services.settings.topics.auto_create
    shown: list[str] = []
    missing: list[str] = []
    for name in wanted:
        if not context.allowed(name):
            response.topics.append(
                MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
            )
        elif image.topic(name) is not None:
            shown.append(name)
        elif creates and not _may_create(context, name):
            response.topics.append(
                MetadataResponseTopic(
                    ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, is_internal=is_internal(name)
                )
            )
        elif (
            creates
            and topic_name_fault(name) is None
            and len(missing) < limits.TOPICS_CREATED_ON_DEMAND_MAX
        ):
            missing.append(name)
        else:
            response.topics.append(_unknown(name))
    return shown, missing


def _may_create(context: RequestContext, name: str) -> bool:
    return context.authorize(
        AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, audit=False
    ) or context.authorize(AclOperation.CREATE, ResourceType.TOPIC, name)


def _unknown(name: str) -> MetadataResponseTopic:
    fault = topic_name_fault(name)
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if fault else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(code, name, is_internal=is_internal(name))


async def _create(
    context: RequestContext,
    request: MetadataRequest,
    response: MetadataResponse,
    names: list[str],
    missing: list[str],
) -> MetadataResponse:
    outcome = await context.services.auto_create.create(missing)
    for name in missing:
        if context.services.image.topic(name) is not None:
            names.append(name)
            continue
        code = outcome.get(name, ErrorCode.NONE) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        response.topics.append(MetadataResponseTopic(code, name, is_internal=is_internal(name)))
    return _finish(context, request, response, names)


def _finish(
    context: RequestContext, request: MetadataRequest, response: MetadataResponse, names: list[str]
) -> MetadataResponse:
    services = context.services
    alive = services.image.alive_nodes(context.listener)
    view = ClientView(context, alive)
    # A client that receives no brokers at all may discard everything it knows, and never reconnect.
    shown = alive or services.image.nodes(context.listener)
    response.brokers = [
        MetadataResponseBroker(node.id, node.host, node.port, node.rack) for node in shown
    ]
    # Clients send admin requests to "the controller"; any broker takes them and passes them on.
    response.controller_id = alive[services.rng.randrange(len(alive))].id if alive else -1
    for name in names:
        topic = services.image.topic(name)
        if topic is not None:
            response.topics.append(view.topic(topic))
    if request.include_topic_authorized_operations:
        for answer in response.topics:
            # Also for missing topics, but not for those that the client may not see.
            if answer.name and answer.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                answer.topic_authorized_operations = context.authorized_operations(
                    ResourceType.TOPIC, answer.name
                )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _cluster_operations(context)
    return response


def _cluster_operations(context: RequestContext) -> int:
    if not context.authorize_cluster(AclOperation.DESCRIBE):
        return 0
    return context.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)


def metadata_failed(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    """Kafka returns an error of the whole request for each topic in it."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error.code, topic.name or "", topic.topic_id)
            for topic in request.topics or ()
        ]
    )


def describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Handle DescribeTopicPartitions: topics by name, in pages."""
    services, cursor = context.services, request.cursor
    start = cursor.topic_name if cursor is not None else ""
    every = not request.topics
    names = services.image.topic_names() if every else {topic.name for topic in request.topics}
    wanted = sorted(name for name in names if name >= start)
    if cursor is not None:
        if not every and cursor.topic_name not in wanted:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The cursor's topic is not among the topics: {cursor.topic_name}",
            )
        if cursor.partition_index < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The cursor's partition must be valid.")
    response = DescribeTopicPartitionsResponse()
    refused = []
    limit = min(services.settings.network.request_partitions_max, request.response_partition_limit)
    room = max(limit, 1)
    for name in wanted:
        if not context.allowed(name):
            if not every:
                refused.append(
                    DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
                )
            continue
        first = cursor.partition_index if cursor is not None and name == start else 0
        if room == 0:
            response.next_cursor = Cursor(name, first)
            break
        answer, left = _page(context, name, first, room)
        response.topics.append(answer)
        room -= len(answer.partitions)
        if left is not None:
            response.next_cursor = Cursor(name, left)
            break
    response.topics += refused
    return response


def _page(
    context: RequestContext, name: str, first: int, room: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int | None]:
    image = context.services.image
    topic = image.topic(name)
    if topic is None:
        fault = topic_name_fault(name)
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if fault else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer = DescribeTopicPartitionsResponseTopic(code, name, is_internal=is_internal(name))
        answer.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, name)
        return answer, None
    nodes = {node.id for node in image.alive_nodes(context.listener)}
    indexes = [index for index in sorted(topic.partitions) if index >= first]
    answer = DescribeTopicPartitionsResponseTopic(0, name, topic.topic_id, is_internal(name))
    for index in indexes[:room]:
        state = topic.partitions[index]
        shown = partition_as_it_is(image, index, state, nodes, 6)
        answer.partitions.append(
            DescribeTopicPartitionsResponsePartition(
                shown.error_code,
                index,
                shown.leader_id,
                shown.leader_epoch,
                shown.replica_nodes,
                shown.isr_nodes,
                list(state.elr),
                list(state.last_known_elr),
                shown.offline_replicas,
            )
        )
    answer.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, name)
    return answer, indexes[room] if len(indexes) > room else None


def describe_topic_partitions_failed(
    request: DescribeTopicPartitionsRequest, error: KafkaError
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error.code, t.name) for t in request.topics]
    )


def describe_cluster(
    context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Handle DescribeCluster on a broker's listener."""
    services = context.services
    response = DescribeClusterResponse(cluster_id=services.cluster_id)
    if context.version >= 1 and request.endpoint_type != BROKER_ENDPOINTS:
        known = request.endpoint_type == CONTROLLER_ENDPOINTS
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but asked for another type.",
        )
    alive = services.image.alive_nodes(context.listener)
    response.controller_id = alive[services.rng.randrange(len(alive))].id if alive else -1
    shown = list(alive)
    if request.include_fenced_brokers:
        shown = services.image.nodes(context.listener)
    response.brokers = [
        DescribeClusterBroker(n.id, n.host, n.port, n.rack, not services.image.is_alive(n.id))
        for n in shown
    ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _cluster_operations(context)
    return response
