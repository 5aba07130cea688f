"""CreateTopics, DeleteTopics, CreatePartitions: permissions here, decisions in the controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from skylog.broker.assembly.diskless_planes import refuse_alone
from skylog.broker.net.context import RequestContext
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.config import is_true
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.settings.topics import topic_values
from skylog.kernel.topics import CLUSTER_METADATA, is_internal
from skylog.wire.messages.create_partitions_request import CreatePartitionsRequest
from skylog.wire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse

DUPLICATE_NAME = "Duplicate topic name."


def _twice(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


async def create_topics(
    context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Handle CreateTopics."""
    accepted = []
    duplicates = _twice(topic.name for topic in request.topics)
    refused = [
        _not_created(name, ErrorCode.INVALID_REQUEST, DUPLICATE_NAME) for name in sorted(duplicates)
    ]
    any_name = context.authorize_cluster(AclOperation.CREATE, audit=False)
    for topic in request.topics:
        if topic.name in duplicates:
            continue
        if topic.name == CLUSTER_METADATA:
            why = f"Creation of internal topic {CLUSTER_METADATA} is prohibited."
            refused.append(_not_created(topic.name, ErrorCode.INVALID_REQUEST, why))
        elif not (any_name or context.allowed(topic.name)):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(_not_created(topic.name, code, "Authorization failed."))
        else:
            try:
                _check_diskless(context, topic)
                accepted.append(topic)
            except KafkaError as error:
                refused.append(_not_created(topic.name, error.code, error.message or ""))
    request.topics = accepted
    context.charge_mutations(sum(max(t.num_partitions, len(t.assignments), 1) for t in accepted), 6)
    response: CreateTopicsResponse = await context.forward(request)
    await context.services.settled()
    for answer in response.topics:
        if not answer.error_code and not context.authorize(
            AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, answer.name, audit=False
        ):
            answer.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answer.configs, answer.num_partitions, answer.replication_factor = [], -1, -1
    response.topics += refused
    return response


def _check_diskless(context: RequestContext, topic: CreatableTopic) -> None:
    services = context.services
    given = {config.name: config.value for config in topic.configs}
    default = topic_values({}, services.configs.current)["diskless.enable"]
    wanted = is_true(given["diskless.enable"]) if "diskless.enable" in given else default
    if wanted and not is_internal(topic.name):
        refuse_alone(services.image, services.settings)


def _not_created(name: str, code: ErrorCode, why: str) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=code, error_message=why)


def create_topics_failed(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    message = error.message or error.code.name
    return CreateTopicsResponse(
        topics=[_not_created(topic.name, error.code, message) for topic in request.topics]
    )


async def create_partitions(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Handle CreatePartitions."""
    duplicates = _twice(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(name, ErrorCode.INVALID_REQUEST, DUPLICATE_NAME)
        for name in sorted(duplicates)
    ]
    accepted = []
    added = 0
    for topic in request.topics:
        if topic.name in duplicates:
            continue
        if not context.allowed(topic.name):
            results.append(
                CreatePartitionsTopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            )
            continue
        accepted.append(topic)
        known = context.services.image.topic(topic.name)
        added += max(topic.count - len(known.partitions), 0) if known is not None else 0
    request.topics = accepted
    context.charge_mutations(added, 3)
    response: CreatePartitionsResponse = await context.forward(request)
    response.results += results
    return response


def create_partitions_failed(
    request: CreatePartitionsRequest, error: KafkaError
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(topic.name, error.code, error.message)
            for topic in request.topics
        ]
    )


async def delete_topics(
    context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Handle DeleteTopics, by name or by id; topics that the client may not describe are not
    revealed."""
    services = context.services
    if not services.settings.topics.delete_enable:
        if context.version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    response = DeleteTopicsResponse()
    doomed = _doomed(context, request, response)
    partitions = 0
    for name in doomed.values():
        topic = services.image.topic(name)
        partitions += len(topic.partitions) if topic is not None else 0
    context.charge_mutations(partitions, 5)
    request.topics = [DeleteTopicState(None, topic_id) for topic_id in doomed]
    request.topic_names = []
    deleted = await context.forward(request, version=6)
    for answer in deleted.responses:
        answer.name = doomed.get(answer.topic_id, answer.name)
    response.responses += deleted.responses
    return response


def _doomed(
    context: RequestContext, request: DeleteTopicsRequest, response: DeleteTopicsResponse
) -> dict[Uuid, str]:
    """The topics that may be deleted, by id; for the others the error is returned."""
    names, ids = _named(request, response)
    image = context.services.image
    any_topic = context.authorize_cluster(AclOperation.DELETE, audit=False)

    def may(operation: AclOperation, name: str) -> bool:
        return any_topic or context.authorize(operation, ResourceType.TOPIC, name)

    doomed: dict[Uuid, str] = {}
    for topic_id in ids:
        name = image.topic_name(topic_id)
        if name is None:
            _refuse(response, None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        elif may(AclOperation.DELETE, name):
            doomed[topic_id] = name
        else:
            shown = name if may(AclOperation.DESCRIBE, name) else None
            _refuse(response, shown, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    for name in names:
        topic = image.topic(name)
        if not may(AclOperation.DESCRIBE, name):
            _refuse(response, name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif topic is None:
            _refuse(response, name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not may(AclOperation.DELETE, name):
            _refuse(response, name, ZERO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif topic.topic_id in doomed:
            del doomed[topic.topic_id]
            why = "The provided topic name maps to an ID that was already supplied."
            _refuse(response, name, topic.topic_id, ErrorCode.INVALID_REQUEST, why)
        else:
            doomed[topic.topic_id] = name
    return doomed


def _named(
    request: DeleteTopicsRequest, response: DeleteTopicsResponse
) -> tuple[list[str], list[Uuid]]:
    """Names and ids of the request, each once; duplicates and missing ones are refused."""
    names = Counter(request.topic_names)
    ids: Counter[Uuid] = Counter()
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            why = "Neither topic name nor id were specified."
            _refuse(response, None, ZERO_UUID, ErrorCode.INVALID_REQUEST, why)
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            why = "You may not specify both topic name and topic id."
            _refuse(response, topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, why)
    for name, count in names.items():
        if count > 1:
            _refuse(response, name, ZERO_UUID, ErrorCode.INVALID_REQUEST, DUPLICATE_NAME)
    for topic_id, count in ids.items():
        if count > 1:
            _refuse(response, None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    return [n for n, count in names.items() if count == 1], [i for i, c in ids.items() if c == 1]


def _refuse(
    response: DeleteTopicsResponse,
    name: str | None,
    topic_id: Uuid,
    code: ErrorCode,
    why: str | None = None,
) -> None:
    response.responses.append(DeletableTopicResult(name, topic_id, code, why or code.name))


def delete_topics_failed(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    named = [(name, ZERO_UUID) for name in request.topic_names]
    named += [(topic.name or "", topic.topic_id) for topic in request.topics]
    response = DeleteTopicsResponse()
    for name, topic_id in named:
        _refuse(response, name or None, topic_id, error.code, error.message)
    return response
