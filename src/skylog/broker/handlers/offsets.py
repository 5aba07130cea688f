"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers: queries on a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import Final

from skylog.broker.net.context import RequestContext
from skylog.broker.partitions.port import Deleted, EpochEnd, Found, Isolation
from skylog.broker.partitions.questions import Question, ask_all
from skylog.diskless.plane import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from skylog.kernel.acl import AclOperation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import is_internal, topic_name_fault
from skylog.log.producers import ProducerEntry
from skylog.wire.messages.delete_records_request import DeleteRecordsRequest
from skylog.wire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from skylog.wire.messages.describe_producers_request import DescribeProducersRequest
from skylog.wire.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from skylog.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from skylog.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skylog.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
)
from skylog.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

# The version from which each special timestamp is understood.
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
READ_COMMITTED: Final = 1
CONSUMER: Final = -1
DEBUGGING: Final = -2
INVALID_LOW_WATERMARK: Final = -1
_OFFSET_NOT_AVAILABLE_FROM: Final = 5
# Older ListOffsets responses have no field for the epoch.
_LEADER_EPOCH_FROM: Final = 4
_TIMEOUT_FROM: Final = 10


def list_offsets(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    """Handle ListOffsets."""
    response = ListOffsetsResponse()
    questions: list[tuple[ListOffsetsPartitionResponse, Question[Found]]] = []
    seen = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    for topic in request.topics:
        allowed = context.allowed(topic.name)
        answers = ListOffsetsTopicResponse(topic.name)
        response.topics.append(answers)
        # A partition that is named twice is refused, with one entry in the response.
        for wanted in {p.partition_index: p for p in topic.partitions}.values():
            answer = ListOffsetsPartitionResponse(wanted.partition_index)
            answers.partitions.append(answer)
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if seen[topic.name, wanted.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                found = _offset_for(context, request, topic.name, wanted)
            except KafkaError as error:
                _tell_offset(context, answer, error)
                continue
            if isinstance(found, Question):
                questions.append((answer, found))
            else:
                _tell_offset(context, answer, found)
    return _list_slowly(context, response, questions) if questions else response


async def _list_slowly(
    context: RequestContext,
    response: ListOffsetsResponse,
    questions: list[tuple[ListOffsetsPartitionResponse, Question[Found]]],
) -> ListOffsetsResponse:
    for answer, found in await ask_all(questions):
        _tell_offset(context, answer, found)
    return response


def _offset_for(
    context: RequestContext, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> Found | Question[Found]:
    if wanted.timestamp < 0 and context.version < _SINCE.get(wanted.timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = context.services.partitions.find(topic, wanted.partition_index)
    if request.replica_id != DEBUGGING:
        partition.require_leader(wanted.current_leader_epoch)
    isolation = Isolation.LOG_END
    if request.replica_id == CONSUMER:
        committed = request.isolation_level == READ_COMMITTED
        isolation = Isolation.COMMITTED if committed else Isolation.UNCOMMITTED
    timeout_ms = request.timeout_ms if context.version >= _TIMEOUT_FROM else 0
    return partition.offset_for(wanted.timestamp, isolation, timeout_ms)


def _tell_offset(
    context: RequestContext, answer: ListOffsetsPartitionResponse, found: Found | KafkaError
) -> None:
    if isinstance(found, KafkaError):
        code = found.code
        unknown = code is ErrorCode.OFFSET_NOT_AVAILABLE
        if unknown and context.version < _OFFSET_NOT_AVAILABLE_FROM:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        answer.error_code = code
        return
    answer.timestamp, answer.offset, epoch = found
    if context.version >= _LEADER_EPOCH_FROM:
        answer.leader_epoch = epoch


def offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse | Awaitable[OffsetForLeaderEpochResponse]:
    """Handle OffsetForLeaderEpoch: where an epoch ends in the leader's log."""
    any_topic = context.authorize_cluster(AclOperation.CLUSTER_ACTION, audit=False)
    response = OffsetForLeaderEpochResponse()
    questions: list[tuple[EpochEndOffset, Question[EpochEnd]]] = []
    for topic in request.topics:
        allowed = any_topic or context.allowed(topic.topic)
        answers = OffsetForLeaderTopicResult(topic.topic)
        response.topics.append(answers)
        for wanted in topic.partitions:
            answer = EpochEndOffset(partition=wanted.partition)
            answers.partitions.append(answer)
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = context.services.partitions.leader(
                    topic.topic, wanted.partition, wanted.current_leader_epoch
                )
                found = partition.epoch_end(wanted.leader_epoch)
            except KafkaError as error:
                _tell_end(answer, error)
                continue
            if isinstance(found, Question):
                questions.append((answer, found))
            else:
                _tell_end(answer, found)
    return _end_slowly(response, questions) if questions else response


async def _end_slowly(
    response: OffsetForLeaderEpochResponse,
    questions: list[tuple[EpochEndOffset, Question[EpochEnd]]],
) -> OffsetForLeaderEpochResponse:
    for answer, found in await ask_all(questions):
        _tell_end(answer, found)
    return response


def _tell_end(answer: EpochEndOffset, found: EpochEnd | KafkaError) -> None:
    if isinstance(found, KafkaError):
        answer.error_code = found.code
    else:
        answer.leader_epoch, answer.end_offset = found


def delete_records(
    context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    """Handle DeleteRecords: raise the start offset of logs."""
    response = DeleteRecordsResponse()
    questions: list[tuple[DeleteRecordsPartitionResult, Question[Deleted]]] = []
    for topic in request.topics:
        allowed = context.allowed(topic.name)
        answers = DeleteRecordsTopicResult(topic.name)
        response.topics.append(answers)
        # If a partition is repeated, the last entry counts.
        for wanted in {p.partition_index: p for p in topic.partitions}.values():
            index = wanted.partition_index
            answer = DeleteRecordsPartitionResult(index, INVALID_LOW_WATERMARK)
            answers.partitions.append(answer)
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                deleted = _delete_before(context, topic.name, index, wanted.offset)
            except KafkaError as error:
                answer.error_code = error.code
                continue
            if isinstance(deleted, Question):
                questions.append((answer, deleted))
            else:
                answer.low_watermark = deleted.low_watermark
    return _delete_slowly(request, response, questions) if questions else response


async def _delete_slowly(
    request: DeleteRecordsRequest,
    response: DeleteRecordsResponse,
    questions: list[tuple[DeleteRecordsPartitionResult, Question[Deleted]]],
) -> DeleteRecordsResponse:
    for answer, deleted in await ask_all(questions, max(request.timeout_ms, 0) / 1000):
        if isinstance(deleted, KafkaError):
            answer.error_code = deleted.code
        else:
            answer.low_watermark, answer.error_code = deleted
    return response


def _delete_before(
    context: RequestContext, topic: str, index: int, offset: int
) -> Deleted | Question[Deleted]:
    services = context.services
    if services.image.partition(topic, index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal(topic):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = services.partitions.leader(topic, index)
    if not services.configs.deletes_records(topic):
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{topic} is compacted only: its records cannot be deleted."
        )
    return partition.delete_before(offset)


def describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Handle DescribeProducers: the producers that a partition's log remembers.

    Each partition once, since its answer is much longer than its number.
    """
    response = DescribeProducersResponse()
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    for name, indexes in asked.items():
        fault = _topic_fault(context, name)
        answers = TopicResponse(name)
        response.topics.append(answers)
        for index in indexes:
            answer = PartitionResponse(index)
            answers.partitions.append(answer)
            try:
                if fault is not None:
                    raise fault
                producers = context.services.partitions.leader(name, index).active_producers()
            except KafkaError as error:
                answer.error_code = error.code
                answer.error_message = error.message or error.code.name
                continue
            answer.active_producers = [_producer_state(one) for one in producers]
    return response


def _producer_state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        entry.producer_id,
        entry.epoch,
        entry.last_sequence,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    )


def _topic_fault(context: RequestContext, topic: str) -> KafkaError | None:
    fault = topic_name_fault(topic)
    if fault is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if not context.allowed(topic):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.services.image.topic(topic) is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None
