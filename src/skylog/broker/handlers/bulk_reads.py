"""PlanRanges and LocateBatches (500, 501): where bulk readers find the bytes of topics.

Both need READ on the topic: who may not read it learns nothing of where it lies. What is told is
the address of the store, never what opens it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from skylog.broker.assembly.diskless_engine import storage_url_of
from skylog.broker.handlers import bulk_classic
from skylog.diskless.bulk import (
    FROM_LOG_START,
    LocatedRange,
    PlannedRange,
    PlannedSplit,
    RangeRequest,
)
from skylog.diskless.plane import LOG_APPEND_TIME
from skylog.diskless.rules import ranges
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.kernel.limits import (
    BULK_LOCATED_BATCHES_MAX,
    BULK_PLANNED_BATCHES_PER_CALL,
    BULK_SPLITS_MAX,
)
from skylog.wire.messages import locate_batches_response as located
from skylog.wire.messages import plan_ranges_response as planned

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.controller.image.topics import Topic
    from skylog.log.log import Log
    from skylog.wire.messages.locate_batches_request import LocateBatchesRequest, LocateRange
    from skylog.wire.messages.plan_ranges_request import PlanRangesRequest


# --- PlanRanges -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Planning:
    """One partition on its way to its answer."""

    answer: planned.PlannedPartition
    asked: RangeRequest
    log: Log | None = None  # of a classic partition
    byte_size: int = 0
    # How far the plan has come.
    left: RangeRequest | None = None
    splits: list[PlannedSplit] = field(default_factory=list)
    skipped_bytes: int = 0

    def take(self, result: PlannedRange) -> None:
        """A page of the plan."""
        left = self.left or self.asked
        missed = result.error is ErrorCode.OFFSET_OUT_OF_RANGE
        if missed and self.asked.start_offset == FROM_LOG_START and left is not self.asked:
            # Meanwhile everything planned so far was deleted: from the new start, then.
            self.left, self.splits, self.skipped_bytes = self.asked, [], 0
            return
        self.answer.error_code = result.error
        self.answer.log_start_offset = result.log_start_offset
        self.answer.high_watermark = result.high_watermark
        self.splits += result.splits
        self.skipped_bytes += result.skipped_bytes
        done = result.error or result.next_offset >= result.end_offset
        # The end stays where it was found first.
        self.left = (
            None
            if done
            else replace(left, start_offset=result.next_offset, end_offset=result.end_offset)
        )

    def finish(self, split_bytes: int) -> None:
        if not self.answer.error_code:
            self.answer.skipped_bytes = self.skipped_bytes
            self.answer.splits = [
                planned.PlannedSplit(*split) for split in ranges.merged(self.splits, split_bytes)
            ]


async def plan_ranges(
    context: RequestContext, request: PlanRangesRequest
) -> planned.PlanRangesResponse:
    if request.split_bytes <= 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"splits of {request.split_bytes} bytes")
    response = planned.PlanRangesResponse()
    remote: list[_Planning] = []
    classic: list[_Planning] = []
    for wanted in request.topics:
        answers = planned.PlannedTopic(wanted.name)
        response.topics.append(answers)
        try:
            topic = _readable(context, wanted.name)
            answers.topic_id, answers.diskless = topic.topic_id, topic.diskless_enabled
        except KafkaError as error:
            answers.error_code, answers.error_message = error.code, error.message
        for one in wanted.partitions:
            answer = planned.PlannedPartition(one.partition_index, answers.error_code)
            answers.partitions.append(answer)
            asked = RangeRequest(
                answers.topic_id,
                one.partition_index,
                one.start_offset,
                one.end_offset,
                one.min_timestamp,
            )
            if answers.error_code:
                continue
            (remote if answers.diskless else classic).append(_Planning(answer, asked))
    async with context.services.diskless.bulk.planning:
        await _plan(context, request.split_bytes, remote, classic)
    if remote:
        response.storage_url = storage_url_of(context.services.settings)
    return response


def _readable(context: RequestContext, name: str) -> Topic:
    if not context.allowed(name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not authorized to read {name}.")
    topic = context.services.image.topic(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
    return topic


async def _plan(
    context: RequestContext, split_bytes: int, remote: list[_Planning], classic: list[_Planning]
) -> None:
    plane = context.services.diskless.plane
    infos = await plane.log_info([one.asked.topic_partition for one in remote])
    for one, info in zip(remote, infos, strict=True):
        one.byte_size = max(info.byte_size, 0)
    for one in classic:
        _open_log(context, one)
    # However small the splits that were asked for: an answer has only so many of them.
    total = sum(one.byte_size for one in (*remote, *classic))
    split_bytes = max(split_bytes, total // BULK_SPLITS_MAX)
    pending = remote
    while pending:
        asked = [one.left or one.asked for one in pending]
        results = await plane.plan_ranges(asked, split_bytes, BULK_PLANNED_BATCHES_PER_CALL)
        for one, result in zip(pending, results, strict=True):
            one.take(result)
        pending = [one for one in pending if one.left is not None]
    for one in classic:
        if one.log is not None:
            one.take(await _plan_classic(context, one.log, one.asked, split_bytes))
    for one in (*remote, *classic):
        one.finish(split_bytes)


def _open_log(context: RequestContext, one: _Planning) -> None:
    topic = context.services.image.topic_name(one.asked.topic_id) or ""
    try:
        partition = context.services.replicas.leader_of(topic, one.asked.partition)
    except KafkaError as error:
        one.answer.error_code = error.code
        return
    one.log, one.byte_size = partition.log, partition.log.size


async def _plan_classic(
    context: RequestContext, log: Log, asked: RangeRequest, split_bytes: int
) -> PlannedRange:
    try:
        work = partial(bulk_classic.plan, log, asked, split_bytes)
        return await context.services.executor.run(work)
    except OSError:  # retention took a segment from under it
        return PlannedRange(ErrorCode.KAFKA_STORAGE_ERROR)


def plan_ranges_failed(request: PlanRangesRequest, error: KafkaError) -> planned.PlanRangesResponse:
    return planned.PlanRangesResponse(
        topics=[
            planned.PlannedTopic(
                topic.name,
                error_code=error.code,
                error_message=error.message,
                partitions=[
                    planned.PlannedPartition(one.partition_index, error.code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# --- LocateBatches --------------------------------------------------------------------------------


async def locate_batches(
    context: RequestContext, request: LocateBatchesRequest
) -> located.LocateBatchesResponse:
    response = located.LocateBatchesResponse()
    answers: list[located.LocatedRange] = []
    asked: list[RangeRequest] = []
    for wanted in request.ranges:
        answer = located.LocatedRange()
        response.ranges.append(answer)
        try:
            asked.append(_range(context, wanted))
            answers.append(answer)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
    limit = request.max_batches if request.max_batches > 0 else BULK_LOCATED_BATCHES_MAX
    engine = context.services.diskless
    async with engine.bulk.locating:
        results = await engine.plane.locate_batches(asked, min(limit, BULK_LOCATED_BATCHES_MAX))
    keys: dict[str, int] = {}
    for answer, result in zip(answers, results, strict=True):
        _fill(answer, result, keys)
    response.object_keys = list(keys)
    return response


def _range(context: RequestContext, wanted: LocateRange) -> RangeRequest:
    topic = _readable(context, wanted.topic_name)
    if wanted.topic_id not in (ZERO_UUID, topic.topic_id):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"{wanted.topic_name} is another topic than it was."
        )
    if not topic.diskless_enabled:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{wanted.topic_name} has no batches in the object store."
        )
    return RangeRequest(
        topic.topic_id,
        wanted.partition_index,
        wanted.start_offset,
        wanted.end_offset,
        wanted.min_timestamp,
    )


def _fill(answer: located.LocatedRange, result: LocatedRange, keys: dict[str, int]) -> None:
    answer.error_code = result.error
    answer.log_start_offset = result.log_start_offset
    answer.high_watermark = result.high_watermark
    answer.next_offset = result.next_offset
    answer.batches = [
        located.LocatedBatch(
            keys.setdefault(batch.object_key, len(keys)),
            batch.byte_offset,
            batch.byte_size,
            batch.base_offset,
            batch.last_offset,
            batch.log_append_timestamp if batch.timestamp_type == LOG_APPEND_TIME else -1,
            batch.timestamp,
            batch.timestamp_type,
        )
        for batch in result.batches
    ]


def locate_batches_failed(
    request: LocateBatchesRequest, error: KafkaError
) -> located.LocateBatchesResponse:
    return located.LocateBatchesResponse(
        ranges=[located.LocatedRange(error.code, error.message) for _ in request.ranges]
    )
