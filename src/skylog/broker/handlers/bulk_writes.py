"""CommitStaged and PinStaged (502, 503): bulk writers put objects into the bucket themselves.

WRITE on every topic is needed, and each principal has its own prefix in the bucket: no principal
can commit, pin or release what another has staged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skylog.broker.assembly.diskless_engine import storage_url_of
from skylog.diskless.batch import Extent
from skylog.diskless.bulk import PinRequest
from skylog.diskless.plane import CommitResult, TopicPartition
from skylog.diskless.staged import Refused, StagedBatch, StagedCommits, StagedObject, staged_key
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.limits import BULK_TIMEOUT_MS_MAX, STAGED_WRITER_CHARACTERS_MAX
from skylog.kernel.topics import is_internal
from skylog.objects.keys import staging_owner
from skylog.wire.messages import commit_staged_response as committed
from skylog.wire.messages import pin_staged_response as pinned

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.controller.image.topics import Topic
    from skylog.wire.messages import commit_staged_request as commit
    from skylog.wire.messages import pin_staged_request as pin


def _writable(context: RequestContext, name: str, topic_id: Uuid, index: int) -> Topic:
    """A diskless topic that the client may write to, with this partition."""
    if not context.allowed(name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not authorized to write {name}.")
    topic = context.services.image.topic(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
    if topic_id not in (ZERO_UUID, topic.topic_id):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"{name} was deleted and created again.")
    if is_internal(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal.")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} has no partition {index}.")
    if not partition.writes_diskless:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is not diskless.")
    return topic


def _check_writer(writer_id: str) -> None:
    if len(writer_id) > STAGED_WRITER_CHARACTERS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"a writer's name of {len(writer_id)} characters"
        )


def _seconds(timeout_ms: int) -> float:
    return min(max(timeout_ms, 0), BULK_TIMEOUT_MS_MAX) / 1000


# --- CommitStaged ---------------------------------------------------------------------------------


async def commit_staged(
    context: RequestContext, request: commit.CommitStagedRequest
) -> committed.CommitStagedResponse:
    """Commit one object after the other, in order; each succeeds or fails by itself."""
    _check_writer(request.writer_id)
    services = context.services
    commits = StagedCommits(
        services.diskless.store,
        services.diskless.plane,
        services.clock,
        services.validators,
        services.settings.node.node_id,
    )
    response = committed.CommitStagedResponse()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _seconds(request.timeout_ms)
    for staged in request.objects:
        try:
            async with asyncio.timeout_at(deadline), services.diskless.bulk.staging:
                answer = await _commit(context, commits, staged)
        except TimeoutError:
            # It may have been committed: repeating the request is safe.
            answer = _failed(staged, KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True))
        response.objects.append(answer)
    return response


async def _commit(
    context: RequestContext, commits: StagedCommits, staged: commit.StagedObject
) -> committed.CommittedObject:
    try:
        checked = _staged(context, staged)
        results = await commits.commit(checked)
    except Refused as refused:
        return _refused(refused.errors)
    except KafkaError as error:
        return _failed(staged, error)
    _count(context, staged, results)
    return _answered(results)


def _staged(context: RequestContext, staged: commit.StagedObject) -> StagedObject:
    """The request with ids resolved; raises ``Refused`` if the client is not authorized, or a name
    is invalid."""
    batches: list[StagedBatch] = []
    errors: list[KafkaError | None] = []
    for batch in staged.batches:
        name = batch.topic_name
        try:
            topic = _writable(context, name, batch.topic_id, batch.partition_index)
        except KafkaError as error:
            errors.append(error)
            continue
        errors.append(None)
        batches.append(
            StagedBatch(
                topic.topic_id,
                batch.partition_index,
                Extent(
                    object_key=staged.object_key,
                    byte_offset=batch.byte_offset,
                    byte_size=batch.byte_size,
                ),
                context.services.configs.topic_rules(name),
            )
        )
    if any(errors):
        raise Refused(errors)
    key = staged_key(staged.object_key, staging_owner(context.principal))
    return StagedObject(key, staged.size, batches)


def _count(
    context: RequestContext, staged: commit.StagedObject, results: Sequence[CommitResult]
) -> None:
    services = context.services
    new_bytes = 0
    for batch, result in zip(staged.batches, results, strict=True):
        if not result.error and not result.duplicate:
            services.traffic.committed(batch.topic_name, batch.byte_size)
            new_bytes += batch.byte_size
    throttle_ms = services.quotas.produced(context, new_bytes)
    context.throttle_ms = max(context.throttle_ms, throttle_ms)


def _answered(results: Sequence[CommitResult]) -> committed.CommittedObject:
    first = next((result for result in results if result.error), None)
    return committed.CommittedObject(
        ErrorCode.NONE if first is None else first.error,
        None if first is None else first.message,
        [
            committed.CommittedBatch(
                result.error,
                result.message,
                result.assigned_base_offset,
                result.log_append_time,
                result.duplicate,
            )
            for result in results
        ],
    )


def _failed(staged: commit.StagedObject, error: KafkaError) -> committed.CommittedObject:
    """An error of the whole object."""
    batch = committed.CommittedBatch(error.code, error.message)
    return committed.CommittedObject(error.code, error.message, [batch] * len(staged.batches))


def _refused(errors: Sequence[KafkaError | None]) -> committed.CommittedObject:
    """Valid batches fail with the others: the object is not committed."""
    first = next(error for error in errors if error is not None)
    return committed.CommittedObject(
        first.code,
        first.message,
        [
            committed.CommittedBatch(ErrorCode.OPERATION_NOT_ATTEMPTED)
            if error is None
            else committed.CommittedBatch(error.code, error.message)
            for error in errors
        ],
    )


# --- PinStaged ------------------------------------------------------------------------------------


async def pin_staged(
    context: RequestContext, request: pin.PinStagedRequest
) -> pinned.PinStagedResponse:
    """Without objects: only where to stage, for clients that may write to any topic."""
    if not context.authorize_any(AclOperation.WRITE, ResourceType.TOPIC):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Not authorized to write any topic.")
    _check_writer(request.writer_id)
    owner = staging_owner(context.principal)
    response = pinned.PinStagedResponse(
        storage_url=storage_url_of(context.services.settings), staging_prefix=f"staging/{owner}/"
    )
    try:
        async with asyncio.timeout(_seconds(request.timeout_ms)):
            change = _release if request.release else _pin
            response.objects = await change(context, request, owner)
    except TimeoutError:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True) from None
    return response


async def _pin(
    context: RequestContext, request: pin.PinStagedRequest, owner: str
) -> list[pinned.PinnedObject]:
    expires_ms = context.services.clock.now_ms() + request.lifetime_ms
    answers = [pinned.PinnedObject() for _ in request.objects]
    places: list[int] = []
    pins: list[PinRequest] = []
    for place, asked in enumerate(request.objects):
        try:
            partitions = _partitions(context, asked)
            key = staged_key(asked.object_key, owner)
        except KafkaError as error:
            answers[place] = pinned.PinnedObject(error.code, error.message)
            continue
        places.append(place)
        pins.append(PinRequest(key.text, request.writer_id, request.epoch, expires_ms, partitions))
    results = await context.services.diskless.plane.pin_files(pins)
    for place, refused in zip(places, results, strict=True):
        answers[place] = (
            pinned.PinnedObject(expires_ms=expires_ms)
            if refused is None
            else pinned.PinnedObject(refused.code, refused.message)
        )
    return answers


def _partitions(context: RequestContext, asked: pin.PinObject) -> list[TopicPartition]:
    found = [
        (_writable(context, topic.topic_name, topic.topic_id, index).topic_id, index)
        for topic in asked.topics
        for index in topic.partitions
    ]
    if not found:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a pin without partitions")
    return found


async def _release(
    context: RequestContext, request: pin.PinStagedRequest, owner: str
) -> list[pinned.PinnedObject]:
    answers: list[pinned.PinnedObject] = []
    keys: list[str] = []
    for asked in request.objects:
        try:
            keys.append(staged_key(asked.object_key, owner).text)
            answers.append(pinned.PinnedObject())
        except KafkaError as error:
            answers.append(pinned.PinnedObject(error.code, error.message))
    await context.services.diskless.plane.release_pins(keys)
    return answers
