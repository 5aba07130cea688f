"""Produce: validate each partition's batch, append it, wait as ``acks`` asks, answer in one piece.

A partition that fails costs only itself. Validation of a large compressed batch runs off the event
loop; everything else is done at once, in the callback that brought the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial

from skylog.broker.handlers.produce_slots import Slot, fail, gone
from skylog.broker.handlers.produce_transactions import (
    begin_verification,
    has_transactional,
    note_verified,
    transactional_denied,
)
from skylog.broker.handlers.verification import Verification, finish_verification
from skylog.broker.net.answers import Close, Overlapping
from skylog.broker.net.context import RequestContext
from skylog.controller.image.topics import Topic
from skylog.diskless.partitions import DisklessPartition
from skylog.diskless.plane import CREATE_TIME, LOG_APPEND_TIME
from skylog.diskless.writer import Item
from skylog.diskless.writer import Request as WriterRequest
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.topics import is_internal
from skylog.kernel.waiting import done_within
from skylog.replication.partition import Partition
from skylog.wire.buffers import Buffer
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from skylog.wire.validation import (
    UnreadableError,
    Validated,
    is_long,
    validate,
)

ALL, NONE, LEADER = -1, 0, 1
# Kafka tells where the log begins with every error but these.
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
ADMIN_CLIENT_ID = "__admin_client"
_NO_RECORD_ERRORS: list[BatchIndexAndErrorMessage] = []
_NO_LEADER = LeaderIdAndEpoch()


@dataclass(slots=True)
class Pending:
    """What the answer has to wait for."""

    waits: list[tuple[Slot, asyncio.Future[None]]] = field(default_factory=list)
    remote: list[tuple[Slot, Item]] = field(default_factory=list)


def produce(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | Overlapping | None:
    """Handle a Produce request; None for ``acks=0``."""
    response = ProduceResponse()
    slots: list[Slot] = []
    transactional = has_transactional(request)
    denied = transactional_denied(context, request) if transactional else None
    for topic in _each_once(request.topic_data):
        added = _slots(context, request, topic, denied)
        answers = [slot.answer for slot in added]
        response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, answers))
        slots += added
    if transactional and denied is None:
        verification = begin_verification(context, request, slots)
        if verification is not None:
            return _produce_verified(context, request, response, slots, verification)
    return _produce(context, request, response, slots)


def _produce(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse, slots: list[Slot]
) -> ProduceResponse | Awaitable[ProduceResponse | None] | Overlapping | None:
    for slot in slots:
        if slot.rules is not None and is_long(_records(slot), slot.rules):
            return _produce_slowly(context, request, response, slots)
    now_ms = context.services.clock.now_ms()
    pending = Pending()
    for slot in slots:
        if slot.partition is not None:
            validated = _validated(context, slot, now_ms)
            _append(context, request, slot, validated, now_ms, pending)
    if pending.remote:
        written = _submit(context, pending)
        if written.waits:  # for room in the writer: so does the client's next request
            return _written(context, request, response, pending, written)
        if pending.waits:
            both = asyncio.ensure_future(_written(context, request, response, pending, written))
            return Overlapping(both, both.result)
        finish = partial(_note_written, context, request, response, pending, written)
        return Overlapping(written.done, finish, max(request.timeout_ms, 0) / 1000)
    if pending.waits:
        # Others of this client may be appended while replicas fetch this one.
        replicated = asyncio.ensure_future(_wait(context, request, response, pending.waits))
        return Overlapping(replicated, replicated.result)
    return _finish(context, request, response)


def _each_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Of a partition that stands twice in a request only the last counts, as with Kafka."""
    if len(topics) == 1:
        listed = topics[0].partition_data
        if len(listed) == 1 or len({data.index for data in listed}) == len(listed):
            return topics
    kept: dict[tuple[str, Uuid], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = kept.setdefault((topic.name, topic.topic_id), {})
        partitions.update((data.index, data) for data in topic.partition_data)
    return [
        TopicProduceData(name, topic_id, list(partitions.values()))
        for (name, topic_id), partitions in kept.items()
    ]


def _slots(
    context: RequestContext,
    request: ProduceRequest,
    topic: TopicProduceData,
    transactional: KafkaError | None,
) -> list[Slot]:
    services = context.services
    name = topic.name
    error = transactional
    if context.version >= 13:
        name = services.image.topic_name(topic.topic_id) or ""
        if not name:
            error = error or KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if error is None and not context.allowed(name):
        error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    known = None if error is not None else services.image.topic(name)
    slots = []
    for data in topic.partition_data:
        # Nothing of the shared values is ever changed in place.
        answer = PartitionProduceResponse(
            data.index, 0, -1, -1, -1, _NO_RECORD_ERRORS, None, _NO_LEADER
        )
        slot = Slot(data, answer)
        slots.append(slot)
        if error is not None:
            # Not raised: it would refer to this frame, and the frame to it and to the request.
            fail(context, slot, error, name)
            continue
        try:
            slot.partition = _writable(context, request, known, name, data.index)
            slot.rules = services.configs.topic_rules(name)
        except KafkaError as failure:
            fail(context, slot, failure, name)
    return slots


def _writable(
    context: RequestContext, request: ProduceRequest, known: Topic | None, name: str, index: int
) -> Partition | DisklessPartition:
    services = context.services
    state = None if known is None else known.partitions.get(index)
    if state is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if request.acks not in (ALL, NONE, LEADER):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal(name) and context.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}"
        )
    if state.writes_diskless:
        return services.diskless.partition(services.image, name, index)
    return services.replicas.leader_of(name, index)


async def _produce_verified(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    slots: list[Slot],
    verification: Verification,
) -> ProduceResponse | None:
    """The same once the transaction's coordinator has agreed."""
    await finish_verification(context.services, verification)
    note_verified(context, slots, verification)
    for slot in slots:
        why = gone(slot)
        if why is not None:
            fail(context, slot, why, slot.partition.topic if slot.partition else "")
    outcome = _produce(context, request, response, slots)
    answer: ProduceResponse | None
    if isinstance(outcome, Overlapping):
        answer = await outcome.wait()
    elif isinstance(outcome, Awaitable):
        answer = await outcome
    else:
        answer = outcome
    return answer


def _records(slot: Slot) -> Buffer:
    return slot.data.records if slot.data.records is not None else b""


def _validated(context: RequestContext, slot: Slot, now_ms: int) -> Validated | KafkaError:
    assert slot.rules is not None  # noqa: S101 - for the type checker
    try:
        return validate(_records(slot), slot.rules, now_ms, context.version)
    except KafkaError as error:
        # Without its frames: one of them is to refer to it, and all of them to the request.
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)


def _append(
    context: RequestContext,
    request: ProduceRequest,
    slot: Slot,
    validated: Validated | KafkaError,
    now_ms: int,
    pending: Pending,
) -> None:
    """Append one batch and fill its answer, or note what that has to wait for."""
    partition = slot.partition
    assert partition is not None  # noqa: S101 - for the type checker
    answer = slot.answer
    acks_all = request.acks == ALL
    try:
        if acks_all and isinstance(partition, Partition):
            partition.require_in_sync()
        if isinstance(validated, KafkaError):
            _refuse(context, slot, partition, validated)
            return
        if isinstance(partition, DisklessPartition):
            stamped = LOG_APPEND_TIME if validated.log_append_time >= 0 else CREATE_TIME
            topic, topic_id, index = partition.topic, partition.topic_id, partition.index
            item = Item(topic, topic_id, index, validated.batch, stamped)
            pending.remote.append((slot, item))
            return
        info = partition.append((validated.batch,), now_ms, slot.origin, acks_all=acks_all)
    except KafkaError as error:
        _refuse(context, slot, partition, error)
        return
    answer.base_offset = info.first_offset
    answer.log_start_offset = info.log_start_offset
    if info.duplicate:
        # Kafka keeps of a batch only its latest time, and gives that for either kind of topic.
        answer.log_append_time_ms = info.max_timestamp
    elif validated.log_append_time >= 0:
        answer.log_append_time_ms = validated.log_append_time
    context.services.traffic.produced(partition.topic, validated.batch)
    wait = partition.committed(info.last_offset) if acks_all else None
    if wait is not None:
        pending.waits.append((slot, wait))


def _refuse(
    context: RequestContext,
    slot: Slot,
    partition: Partition | DisklessPartition,
    error: KafkaError,
) -> None:
    """A batch that its log, or what stands before it, does not take."""
    told = not isinstance(error, UnreadableError) and error.code not in _WITHOUT_LOG_START
    if told and isinstance(partition, Partition):
        slot.answer.log_start_offset = partition.log.log_start_offset
    fail(context, slot, error, partition.topic)


async def _produce_slowly(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    slots: list[Slot],
) -> ProduceResponse | None:
    """The same with validation on a thread: long decompression must not hold up other clients."""
    services = context.services
    now_ms = services.clock.now_ms()
    chosen = [slot for slot in slots if slot.partition is not None]
    results = await services.validators.run(
        lambda: [_validated(context, slot, now_ms) for slot in chosen]
    )
    pending = Pending()
    for slot, validated in zip(chosen, results, strict=True):
        outcome = gone(slot) or validated
        _append(context, request, slot, outcome, services.clock.now_ms(), pending)
    if pending.remote:
        written = _submit(context, pending)
        return await _written(context, request, response, pending, written)
    if pending.waits:
        return await _wait(context, request, response, pending.waits)
    return _finish(context, request, response)


def _submit(context: RequestContext, pending: Pending) -> WriterRequest:
    writer = context.services.diskless.writer
    return writer.submit(context.correlation_id, [item for _, item in pending.remote])


async def _written(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    pending: Pending,
    written: WriterRequest,
) -> ProduceResponse | None:
    """Until the object store has it and offsets are assigned; then whatever else there is."""
    await done_within(written.done, max(request.timeout_ms, 0) / 1000)
    answer = _note_written(context, request, response, pending, written)
    if pending.waits:
        return await _wait(context, request, response, pending.waits)
    return answer


def _note_written(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    pending: Pending,
    written: WriterRequest,
) -> ProduceResponse | None:
    """What became of the diskless partitions, as far as it is known; and with that, the answer."""
    for (slot, item), result in zip(pending.remote, written.results(), strict=True):
        if result.error is not ErrorCode.NONE:
            fail(context, slot, KafkaError(result.error, result.message), item.topic)
            continue
        slot.answer.base_offset = result.base_offset
        slot.answer.log_append_time_ms = result.log_append_time
        slot.answer.log_start_offset = result.log_start_offset
        context.services.traffic.produced(item.topic, item.batch)
    return None if pending.waits else _finish(context, request, response)


async def _wait(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    waits: list[tuple[Slot, asyncio.Future[None]]],
) -> ProduceResponse | None:
    """Until all replicas in sync have it; an unknown outcome after the time is up is said so."""
    await asyncio.wait([wait for _, wait in waits], timeout=max(request.timeout_ms, 0) / 1000)
    for slot, wait in waits:
        error: BaseException | None = KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
        if wait.done():
            error = wait.exception()
        else:
            wait.cancel()
        if error is not None:
            if not isinstance(error, KafkaError):
                raise error  # a bug, and no reason to call the batch written
            slot.answer.base_offset = slot.answer.log_start_offset = -1
            fail(context, slot, error, slot.partition.topic if slot.partition else "")
    return _finish(context, request, response)


def _finish(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> ProduceResponse | None:
    services = context.services
    throttle_ms = services.quotas.produced(context, context.request_bytes)
    context.throttle_ms = max(context.throttle_ms, throttle_ms)
    failed = [p for t in response.responses for p in t.partition_responses if p.error_code]
    if request.acks == NONE:
        if failed:
            raise Close("a batch sent with acks=0 failed")
        return None
    if not failed:
        return response
    leaders = {answer.current_leader.leader_id for answer in failed} - {-1}
    for node in services.image.endpoints(leaders, context.listener):
        response.node_endpoints.append(NodeEndpoint(node.id, node.host, node.port, node.rack))
    return response
