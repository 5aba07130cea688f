"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers: questions to a log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from functools import partial
from typing import Final, Protocol, TypeVar

from skylog.broker.handlers.diskless_offsets import (
    LEADER_EPOCH_FROM,
    delete_diskless_records,
    diskless_partition,
    end_of_epochs,
    list_diskless_offsets,
)
from skylog.broker.net.context import RequestContext
from skylog.kernel.acl import AclOperation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.topics import is_internal, topic_name_fault
from skylog.log.files import WouldBlock
from skylog.log.producers import ProducerEntry
from skylog.replication.partition import Partition
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
    OffsetForLeaderPartition,
)
from skylog.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
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
OFFSET_NOT_AVAILABLE_FROM: Final = 5
DEBUGGING: Final = -2
HIGH_WATERMARK: Final = -1
INVALID_LOW_WATERMARK: Final = -1

T = TypeVar("T")
Found = tuple[int, int, int]  # timestamp, offset, leader epoch
_NOTHING: Final[Found] = (-1, -1, -1)


class Search(Protocol):
    """Looks into a log; may run on a thread when it may block."""

    def __call__(self, *, block: bool) -> Found: ...


def list_offsets(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    """Handle ListOffsets; a search that must touch the disk runs on a thread."""
    response = ListOffsetsResponse()
    searches: list[tuple[ListOffsetsPartitionResponse, Search]] = []
    remote: list[tuple[ListOffsetsPartitionResponse, tuple[Uuid, int], int]] = []
    seen = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    for topic in request.topics:
        allowed = context.allowed(topic.name)
        answers = ListOffsetsTopicResponse(topic.name)
        response.topics.append(answers)
        # Who is named twice is refused, once.
        for wanted in {p.partition_index: p for p in topic.partitions}.values():
            answer = ListOffsetsPartitionResponse(wanted.partition_index)
            answers.partitions.append(answer)
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if seen[topic.name, wanted.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                _check_timestamp(context, wanted)
                place = diskless_partition(context, topic.name, wanted.partition_index)
                if place is not None:
                    remote.append((answer, place, wanted.timestamp))
                    continue
                search = _search(context, request, topic.name, wanted)
                try:
                    _fill(context, answer, search(block=False))
                except WouldBlock:
                    searches.append((answer, search))
            except KafkaError as error:
                answer.error_code = error.code
    if not searches and not remote:
        return response
    return _search_slowly(context, response, searches, remote)


async def _search_slowly(
    context: RequestContext,
    response: ListOffsetsResponse,
    searches: list[tuple[ListOffsetsPartitionResponse, Search]],
    remote: list[tuple[ListOffsetsPartitionResponse, tuple[Uuid, int], int]],
) -> ListOffsetsResponse:
    if remote:
        await list_diskless_offsets(context, remote)
    for answer, search in searches:
        try:
            found = await context.services.executor.run(partial(search, block=True))
            _fill(context, answer, found)
        except KafkaError as error:
            answer.error_code = error.code
    return response


def _fill(context: RequestContext, answer: ListOffsetsPartitionResponse, found: Found) -> None:
    answer.timestamp, answer.offset, epoch = found
    if context.version >= LEADER_EPOCH_FROM:
        answer.leader_epoch = epoch


def _check_timestamp(context: RequestContext, wanted: ListOffsetsPartition) -> None:
    if wanted.timestamp < 0 and context.version < _SINCE.get(wanted.timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _search(
    context: RequestContext, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> Search:
    """How to find an offset; KafkaError if it may not be looked for."""
    replicas = context.services.replicas
    partition = replicas.get(topic, wanted.partition_index)
    if request.replica_id != DEBUGGING or partition is None:
        partition = replicas.leader_of(topic, wanted.partition_index, wanted.current_leader_epoch)
    limit = _readable_end(partition, request)
    late = request.replica_id == CONSUMER and partition.epoch_start_offset > limit
    if not late:
        return partial(_at, partition, wanted.timestamp, limit)
    # A new leader does not know yet how far its predecessor had committed.
    newer = ErrorCode.OFFSET_NOT_AVAILABLE
    code = newer if context.version >= OFFSET_NOT_AVAILABLE_FROM else ErrorCode.LEADER_NOT_AVAILABLE
    return partial(_at_new_leader, partition, wanted.timestamp, limit, code)


def _readable_end(partition: Partition, request: ListOffsetsRequest) -> int:
    log = partition.log
    if request.replica_id != CONSUMER:
        return log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def _at(partition: Partition, timestamp: int, limit: int, *, block: bool) -> Found:
    log = partition.log
    if timestamp == LATEST:
        return -1, limit, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset, log.epoch_of(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NOTHING  # nothing is tiered
    if timestamp == MAX_TIMESTAMP:
        found = log.reader.max_timestamp_offset(block=block)
    else:
        found = log.reader.offset_for_timestamp(timestamp, block=block)
    # A record that may still be lost is no answer.
    return found if found is not None and found[1] < limit else _NOTHING


def _at_new_leader(
    partition: Partition, timestamp: int, limit: int, code: ErrorCode, *, block: bool
) -> Found:
    """What a leader may say before its high watermark has reached its epoch."""
    found = _NOTHING if timestamp == LATEST else _at(partition, timestamp, limit, block=block)
    if found == _NOTHING and timestamp not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        raise KafkaError(code)
    return found


def offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse | Awaitable[OffsetForLeaderEpochResponse]:
    """Handle OffsetForLeaderEpoch: where an epoch ends in the leader's log."""
    any_topic = context.authorize_cluster(AclOperation.CLUSTER_ACTION, audit=False)
    response = OffsetForLeaderEpochResponse()
    remote: list[tuple[EpochEndOffset, tuple[Uuid, int], int]] = []
    for topic in request.topics:
        allowed = any_topic or context.allowed(topic.topic)
        answers = OffsetForLeaderTopicResult(topic.topic)
        response.topics.append(answers)
        for wanted in topic.partitions:
            place = diskless_partition(context, topic.topic, wanted.partition)
            if allowed and place is not None:
                answer = EpochEndOffset(partition=wanted.partition)
                remote.append((answer, place, wanted.leader_epoch))
            else:
                answer = _epoch_end(context, topic.topic, wanted, allowed)
            answers.partitions.append(answer)
    if not remote:
        return response
    return _then(end_of_epochs(context.services.diskless, remote), response)


async def _then(work: Awaitable[None], response: T) -> T:
    await work
    return response


def _epoch_end(
    context: RequestContext, topic: str, wanted: OffsetForLeaderPartition, allowed: bool
) -> EpochEndOffset:
    answer = EpochEndOffset(partition=wanted.partition)
    try:
        if not allowed:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = context.services.replicas.leader_of(
            topic, wanted.partition, wanted.current_leader_epoch
        )
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.leader_epoch, answer.end_offset = partition.log.epoch_end_offset(wanted.leader_epoch)
    return answer


def delete_records(
    context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    """Handle DeleteRecords: move the start of logs up."""
    response = DeleteRecordsResponse()
    remote: list[tuple[DeleteRecordsPartitionResult, tuple[Uuid, int], int]] = []
    behind: list[tuple[DeleteRecordsPartitionResult, Partition, asyncio.Future[None]]] = []
    for topic in request.topics:
        allowed = context.allowed(topic.name)
        answers = DeleteRecordsTopicResult(topic.name)
        response.topics.append(answers)
        # Of a partition that is named twice the last word counts.
        for wanted in {p.partition_index: p for p in topic.partitions}.values():
            index = wanted.partition_index
            answer = DeleteRecordsPartitionResult(index, INVALID_LOW_WATERMARK)
            answers.partitions.append(answer)
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                place = diskless_partition(context, topic.name, index)
                if place is not None:
                    remote.append((answer, place, wanted.offset))
                    continue
                partition, start = _delete_before(context, topic.name, index, wanted.offset)
                answer.low_watermark = partition.low_watermark
                wait = partition.deleted_everywhere(start)
                if wait is not None:
                    behind.append((answer, partition, wait))
            except KafkaError as error:
                answer.error_code = error.code
    if behind:
        return _deleted(context, request, response, remote, behind)
    if not remote:
        return response
    return _then(delete_diskless_records(context.services.diskless, remote), response)


async def _deleted(
    context: RequestContext,
    request: DeleteRecordsRequest,
    response: DeleteRecordsResponse,
    remote: list[tuple[DeleteRecordsPartitionResult, tuple[Uuid, int], int]],
    behind: list[tuple[DeleteRecordsPartitionResult, Partition, asyncio.Future[None]]],
) -> DeleteRecordsResponse:
    """Wait for the followers; those that do not make it in time are named."""
    if remote:
        await delete_diskless_records(context.services.diskless, remote)
    waits = [wait for _, _, wait in behind]
    await asyncio.wait(waits, timeout=max(request.timeout_ms, 0) / 1000)
    for answer, partition, wait in behind:
        if not wait.done():
            wait.cancel()
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        elif isinstance(error := wait.exception(), KafkaError):
            answer.error_code = error.code
        else:
            answer.low_watermark = partition.low_watermark
    return response


def _delete_before(
    context: RequestContext, topic: str, index: int, offset: int
) -> tuple[Partition, int]:
    services = context.services
    if services.image.partition(topic, index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal(topic):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = services.replicas.leader_of(topic, index)
    if not services.configs.deletes_records(topic):
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{topic} is only compacted: it keeps its records."
        )
    end = partition.log.high_watermark
    target = end if offset == HIGH_WATERMARK else offset
    if target < 0 or target > end:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return partition, partition.delete_records_before(target)


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
                partition = context.services.replicas.leader_of(name, index)
            except KafkaError as error:
                answer.error_code = error.code
                answer.error_message = error.message or error.code.name
                continue
            answer.active_producers = [_producer_state(p) for p in partition.log.producers]
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
