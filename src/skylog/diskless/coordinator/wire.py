"""Pure: conversion of coordinators' requests, results and records to and from messages.

Items keep their order in messages: a topic that occurs again after another one is listed again. So
a coordinator's results are in the order of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, TypeVar

from skylog.diskless.batch import (
    NO_PRODUCER,
    BatchCoordinate,
    BatchToCommit,
    Committed,
    Extent,
    ProducerStamp,
    Stamp,
)
from skylog.diskless.plane import CommitResult, FindResult, LogInfo
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.messages.diskless_commit_file_request import DisklessCommitBatch
from skylog.wire.messages.diskless_commit_file_response import DisklessCommitBatchResult
from skylog.wire.messages.diskless_find_batches_response import (
    DisklessBatchCoordinate,
    DisklessFindBatchesPartitionResult,
)
from skylog.wire.messages.file_committed_record import CommittedBatch

ItemT = TypeVar("ItemT")
TopicT = TypeVar("TopicT")
_new: Final = tuple.__new__


def by_topic(
    items: Iterable[ItemT],
    topic_of: Callable[[ItemT], Uuid],
    message_of: Callable[[Uuid, list[ItemT]], TopicT],
) -> list[TopicT]:
    """Consecutive items of one topic become one topic of the message."""
    return [message_of(topic_id, list(held)) for topic_id, held in groupby(items, key=topic_of)]


def error_code(code: int) -> ErrorCode:
    """An unknown number is still an error."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def failure(code: int, message: str | None = None) -> KafkaError:
    """The error of another broker; only a request that timed out there may have had an effect."""
    known = error_code(code)
    return KafkaError(known, message, ambiguous=known is ErrorCode.REQUEST_TIMED_OUT)


def commit_batch(batch: BatchToCommit) -> DisklessCommitBatch:
    _, byte_offset, byte_size = batch.extent
    base_offset, last_offset, _, batch_max_timestamp, timestamp_type, magic = batch.stamp
    return DisklessCommitBatch(
        magic,
        batch.request_id,
        batch.topic_id,
        batch.partition,
        byte_offset,
        byte_size,
        base_offset,
        last_offset,
        batch_max_timestamp,
        timestamp_type,
        *batch.producer,
    )


def batch_to_commit(batch: DisklessCommitBatch, object_key: str) -> BatchToCommit:
    return BatchToCommit(
        topic_id=batch.topic_id,
        partition=batch.partition_index,
        extent=_new(Extent, (object_key, batch.byte_offset, batch.size)),
        stamp=_new(
            Stamp,
            (
                batch.base_offset,
                batch.last_offset,
                -1,
                batch.batch_max_timestamp,
                batch.timestamp_type,
                batch.magic,
            ),
        ),
        producer=_new(
            ProducerStamp,
            (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence),
        ),
        request_id=batch.request_id,
    )


def committed_batch(extent: Extent, stamp: Stamp, producer: ProducerStamp) -> CommittedBatch:
    """A batch in the record of its file's commit."""
    if not producer.idempotent:
        producer = NO_PRODUCER
    return CommittedBatch(
        stamp.magic,
        extent.byte_offset,
        extent.byte_size,
        stamp.base_offset,
        stamp.last_offset,
        stamp.log_append_timestamp,
        stamp.batch_max_timestamp,
        stamp.timestamp_type,
        producer.producer_id,
        producer.producer_epoch,
        producer.base_sequence,
        producer.last_sequence,
    )


def committed(batch: CommittedBatch, object_key: str) -> Committed:
    extent = _new(Extent, (object_key, batch.byte_offset, batch.byte_size))
    stamp = _new(
        Stamp,
        (
            batch.assigned_base_offset,
            batch.assigned_last_offset,
            batch.log_append_timestamp,
            batch.batch_max_timestamp,
            batch.timestamp_type,
            batch.magic,
        ),
    )
    return extent, stamp


def batch_result(result: CommitResult) -> DisklessCommitBatchResult:
    return DisklessCommitBatchResult(
        result.error,
        result.message,
        result.assigned_base_offset,
        result.log_append_time,
        result.log_start_offset,
        result.duplicate,
    )


def commit_result(result: DisklessCommitBatchResult) -> CommitResult:
    return CommitResult(
        error_code(result.error_code),
        result.assigned_base_offset,
        result.log_append_time,
        result.log_start_offset,
        result.is_duplicate,
        result.error_message,
    )


def coordinate_fields(batch: BatchCoordinate) -> tuple[Any, ...]:
    """In the order used by every message with coordinates."""
    object_key, byte_offset, byte_size = batch.extent
    *times, timestamp_type, magic = batch.stamp
    return (batch.batch_id, object_key, magic, byte_offset, byte_size, *times, timestamp_type)


def coordinate(batch: Any) -> BatchCoordinate:
    return BatchCoordinate.of_row(
        (
            batch.batch_id,
            batch.object_key,
            batch.byte_offset,
            batch.byte_size,
            batch.base_offset,
            batch.last_offset,
            batch.log_append_timestamp,
            batch.batch_max_timestamp,
            batch.timestamp_type,
            batch.magic,
        )
    )


def found_partition(
    index: int, result: FindResult, info: LogInfo
) -> DisklessFindBatchesPartitionResult:
    """``info`` may be newer than the result, and agrees with itself; its numbers are -1 if nobody
    asked."""
    if info.high_watermark >= 0:
        result = replace(
            result,
            log_start_offset=info.log_start_offset,
            high_watermark=info.high_watermark,
        )
    return DisklessFindBatchesPartitionResult(
        index,
        result.error,
        result.log_start_offset,
        result.high_watermark,
        [DisklessBatchCoordinate(*coordinate_fields(batch)) for batch in result.batches],
        info.byte_size,
        info.wal_start_offset,
    )


def find_result(partition: DisklessFindBatchesPartitionResult) -> FindResult:
    return FindResult(
        error_code(partition.error_code),
        [coordinate(batch) for batch in partition.batches],
        partition.log_start_offset,
        partition.high_watermark,
    )


def log_info(partition: DisklessFindBatchesPartitionResult) -> LogInfo:
    """From the answer to a find that wants no batches, which has the log's numbers whatever it
    finds."""
    error = error_code(partition.error_code)
    if partition.high_watermark < 0:
        return LogInfo(error)
    if partition.log_bytes < 0:
        return LogInfo(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    start = partition.log_start_offset
    return LogInfo(
        ErrorCode.NONE,
        start,
        partition.high_watermark,
        partition.log_bytes,
        max(start, partition.wal_start_offset),
    )


def items_of(topics: Sequence[Any], count: int) -> list[Any]:
    """The partitions of a response, one for each item of the request.

    If there are fewer, the outcome of the others is unknown.
    """
    found = [partition for topic in topics for partition in topic.partitions]
    if len(found) != count:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"{len(found)} answers to {count} items", ambiguous=True
        )
    return found
