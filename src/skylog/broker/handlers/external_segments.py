"""StartSegments and FinishSegments (510, 511): segments of diskless topics that jobs assemble.

Both need CLUSTER_ACTION, as brokers do for what they do to each other's records: what a job puts
becomes a part of the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from skylog.broker.assembly.tiered import storage_config
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    BULK_TIMEOUT_MS_MAX,
    EXTERNAL_PARTITIONS_AT_ONCE_MAX,
    EXTERNAL_PARTITIONS_PER_REQUEST_MAX,
    EXTERNAL_SEGMENTS_PER_PARTITION_MAX,
)
from skylog.tiered.consolidation.grants import Asked
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.messages import finish_segments_response as finished
from skylog.wire.messages import start_segments_response as started

if TYPE_CHECKING:
    from skylog.broker.assembly.tiered import TieredStorage
    from skylog.broker.net.context import RequestContext
    from skylog.tiered.consolidation.external import ExternalAssembly
    from skylog.tiered.consolidation.leases import SegmentGrant
    from skylog.wire.messages import finish_segments_request as finish
    from skylog.wire.messages import start_segments_request as start

AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")
_TIMED_OUT: Final = KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)


async def start_segments(
    context: RequestContext, request: start.StartSegmentsRequest
) -> started.StartSegmentsResponse:
    """Grant segments, or only say where the next ones begin: partition by partition."""
    tiered = _tiered(context)
    layout = tiered.storage.layout
    if not isinstance(layout, AivenLayout):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "jobs can only assemble segments for a store with manifests, which"
            " LocalTieredStorage has not",
        )

    async def grant(asked: start.StartPartition) -> started.StartedPartition:
        return await _start(context, tiered.external, request, asked)

    return started.StartSegmentsResponse(
        storage_url=storage_config(context.services.settings).url,
        chunk_size=layout.chunk_size,
        broker_id=context.services.settings.node.node_id,
        partitions=await _each(request.partitions, request.timeout_ms, grant, _start_failed),
    )


async def _start(
    context: RequestContext,
    external: ExternalAssembly,
    request: start.StartSegmentsRequest,
    asked: start.StartPartition,
) -> started.StartedPartition:
    found = await external.start(
        _partition(context, asked),
        request.job_id,
        asked.leader_epoch,
        [Asked(one.segment_id, one.start_offset, one.end_offset) for one in asked.segments],
        take_over=request.take_over,
    )
    now = context.services.clock.monotonic()
    return started.StartedPartition(
        topic_id=asked.topic_id,
        partition_index=asked.partition_index,
        leader_epoch=found.leader_epoch,
        next_offset=found.next_offset,
        high_watermark=found.high_watermark,
        producer_snapshot=found.producer_snapshot,
        segments=[_started(grant, now) for grant in found.grants],
    )


def _started(grant: SegmentGrant, now: float) -> started.StartedSegment:
    segment = grant.segment
    return started.StartedSegment(
        segment_id=segment.id,
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        size_in_bytes=segment.size,
        max_timestamp_ms=segment.max_timestamp_ms,
        event_timestamp_ms=segment.event_timestamp_ms,
        lease_ms=max(int((grant.ends_at - now) * 1000), 0),
    )


def _start_failed(asked: start.StartPartition, error: KafkaError) -> started.StartedPartition:
    return started.StartedPartition(
        asked.topic_id, asked.partition_index, error.code, error.message
    )


async def finish_segments(
    context: RequestContext, request: finish.FinishSegmentsRequest
) -> finished.FinishSegmentsResponse:
    """Check what was put of segments, and finish them in the order of their offsets."""
    external = _tiered(context).external

    async def end(asked: finish.FinishPartition) -> finished.FinishedPartition:
        return await _finish(context, external, request.job_id, asked)

    return finished.FinishSegmentsResponse(
        partitions=await _each(request.partitions, request.timeout_ms, end, _finish_failed)
    )


async def _finish(
    context: RequestContext, external: ExternalAssembly, job: Any, asked: finish.FinishPartition
) -> finished.FinishedPartition:
    partition, epoch = _partition(context, asked), asked.leader_epoch
    if len(asked.segments) > EXTERNAL_SEGMENTS_PER_PARTITION_MAX:
        count = len(asked.segments)
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{count} segments of one partition")

    async def check(one: finish.FinishSegment) -> SegmentGrant | KafkaError | None:
        try:
            if one.give_up:
                external.give_up(partition, job, epoch, one.segment_id)
                return None
            return await external.check(partition, job, epoch, one.segment_id)
        except KafkaError as error:
            return error

    answer = finished.FinishedPartition(asked.topic_id, asked.partition_index)
    # All are checked at once; they are finished one after the other.
    checks = await asyncio.gather(*(check(one) for one in asked.segments))
    for one, checked in zip(asked.segments, checks, strict=True):
        result = finished.FinishedSegment(one.segment_id)
        answer.segments.append(result)
        try:
            if isinstance(checked, KafkaError):
                raise checked
            if checked is not None:
                await external.finish(partition, epoch, checked)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    answer.next_offset = external.next_offset(partition)
    return answer


def _finish_failed(asked: finish.FinishPartition, error: KafkaError) -> finished.FinishedPartition:
    return finished.FinishedPartition(
        asked.topic_id,
        asked.partition_index,
        segments=[
            finished.FinishedSegment(one.segment_id, error.code, error.message)
            for one in asked.segments
        ],
    )


def _tiered(context: RequestContext) -> TieredStorage:
    tiered = context.services.tiered
    if tiered is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "remote.log.storage.system.enable is false on this broker"
        )
    return tiered


def _partition(
    context: RequestContext, asked: start.StartPartition | finish.FinishPartition
) -> TopicIdPartition:
    topic = context.services.image.topic_by_id(asked.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if asked.partition_index not in topic.partitions:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not topic.diskless_enabled:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{topic.name} is not diskless: its leaders copy its segments as they are",
        )
    if not context.services.configs.log_config(topic.name).remote:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic.name} has no remote storage")
    return TopicIdPartition(asked.topic_id, asked.partition_index)


async def _each(
    asked: Sequence[AskedT],
    timeout_ms: int,
    work: Callable[[AskedT], Awaitable[AnswerT]],
    failed: Callable[[AskedT, KafkaError], AnswerT],
) -> list[AnswerT]:
    """An answer for each partition, some of them at once; what is not done in time goes on, and
    the same request again gets its result."""
    if len(asked) > EXTERNAL_PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{len(asked)} partitions in one request")
    slots = asyncio.Semaphore(EXTERNAL_PARTITIONS_AT_ONCE_MAX)
    seconds = min(max(timeout_ms, 0), BULK_TIMEOUT_MS_MAX) / 1000
    deadline = asyncio.get_running_loop().time() + seconds

    async def one(partition: AskedT) -> AnswerT:
        try:
            async with asyncio.timeout_at(deadline), slots:
                return await work(partition)
        except KafkaError as error:
            return failed(partition, error)
        except TimeoutError:
            return failed(partition, _TIMED_OUT)

    return list(await asyncio.gather(*(one(each) for each in asked)))
