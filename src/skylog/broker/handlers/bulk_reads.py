"""PlanRanges and LocateBatches (500, 501): where bulk readers find the bytes of topics.

Both need READ on the topic: other principals do not learn where it is stored. They return the
address of the store, never its credentials.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from skylog.broker.assembly.diskless_engine import storage_url_of
from skylog.broker.partitions.questions import Question, ask_all
from skylog.client.bulk import Region, Regions
from skylog.diskless.batch import LOG_APPEND_TIME, Extent, Stamp
from skylog.diskless.bulk import (
    FROM_LOG_START,
    LocatedRange,
    PlannedRange,
    PlannedSplit,
    RangeRequest,
)
from skylog.diskless.rules import ranges
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.kernel.limits import (
    BULK_LOCATED_BATCHES_MAX,
    BULK_SPLITS_MAX,
)
from skylog.wire.messages import locate_batches_response as located
from skylog.wire.messages import plan_ranges_response as planned

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.broker.partitions.port import ServedPartition
    from skylog.broker.tiered.bulk_ranges import TieredRanges
    from skylog.controller.image.topics import Topic
    from skylog.tiered.reading import locating
    from skylog.wire.messages.locate_batches_request import LocateBatchesRequest, LocateRange
    from skylog.wire.messages.plan_ranges_request import PlanRangesRequest

# Clients of earlier releases ask for no regions.
_KNOWN: Final = frozenset(Regions)

# --- PlanRanges -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Planning:
    """The processing of one partition."""

    answer: planned.PlannedPartition
    asked: RangeRequest
    partition: ServedPartition
    # How far the plan has progressed.
    left: RangeRequest | None = None
    splits: list[PlannedSplit] = field(default_factory=list)
    skipped_bytes: int = 0

    def take(self, result: PlannedRange) -> None:
        """A page of the plan."""
        left = self.left or self.asked
        missed = result.error is ErrorCode.OFFSET_OUT_OF_RANGE
        if missed and self.asked.start_offset == FROM_LOG_START and left is not self.asked:
            # Everything planned so far was deleted meanwhile: continue from the new start.
            self.left, self.splits, self.skipped_bytes = self.asked, [], 0
            return
        self.answer.error_code = result.error
        self.answer.log_start_offset = result.log_start_offset
        self.answer.high_watermark = result.high_watermark
        self.splits += result.splits
        self.skipped_bytes += result.skipped_bytes
        done = result.error or result.next_offset >= result.end_offset
        # The end stays where the first page found it.
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
    plans: list[_Planning] = []
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
            if answers.error_code:
                continue
            asked = RangeRequest(
                answers.topic_id,
                one.partition_index,
                one.start_offset,
                one.end_offset,
                one.min_timestamp,
                request.regions == Regions.WAL,
            )
            try:
                partition = context.services.partitions.leader(wanted.name, one.partition_index)
            except KafkaError as error:
                answer.error_code = error.code
                continue
            plans.append(_Planning(answer, asked, partition))
    async with context.services.diskless.bulk.planning:
        await _plan(request.split_bytes, plans)
    if request.regions not in _KNOWN:
        _without_regions(response)
    if any(topic.diskless and topic.partitions for topic in response.topics):
        response.storage_url = storage_url_of(context.services.settings)
    return response


def _without_regions(response: planned.PlanRangesResponse) -> None:
    """A client that knows of no regions fetches from brokers what is tiered, with all else that it
    asked for in the same entry."""
    for topic in response.topics:
        splits = [split for partition in topic.partitions for split in partition.splits]
        if any(split.region for split in splits):
            topic.diskless = False
        for split in splits:
            split.region = Region.TOPIC


def _readable(context: RequestContext, name: str) -> Topic:
    if not context.allowed(name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not authorized to read {name}.")
    topic = context.services.image.topic(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
    return topic


async def _plan(split_bytes: int, plans: list[_Planning]) -> None:
    # However small the requested splits, a response has a limited number of them.
    split_bytes = max(split_bytes, await _total_bytes(plans) // BULK_SPLITS_MAX)
    pending = plans
    while pending:
        questions = [
            (one, one.partition.plan(one.left or one.asked, split_bytes)) for one in pending
        ]
        for one, result in await ask_all(questions):
            one.take(PlannedRange(result.code) if isinstance(result, KafkaError) else result)
        pending = [one for one in pending if one.left is not None]
    for one in plans:
        one.finish(split_bytes)


async def _total_bytes(plans: list[_Planning]) -> int:
    total, questions = 0, []
    for one in plans:
        size = one.partition.byte_size()
        if isinstance(size, Question):
            questions.append((one, size))
        else:
            total += size
    for _, found in await ask_all(questions):
        total += 0 if isinstance(found, KafkaError) else found
    return total


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
            asked.append(_range(context, wanted, wal_only=request.regions == Regions.WAL))
            answers.append(answer)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
    limit = request.max_batches if request.max_batches > 0 else BULK_LOCATED_BATCHES_MAX
    limit = min(limit, BULK_LOCATED_BATCHES_MAX)
    engine, keys = context.services.diskless, _Keys()
    tiers = engine.bulk.tiers
    if tiers is not None and request.regions in _KNOWN:
        for answer, found in zip(answers, await tiers.locate(asked, limit), strict=True):
            _fill(answer, found.wal, keys)
            answer.batches[:0] = [_tiered(extent, tiers, keys) for extent in found.extents]
            if found.extents:
                response.tiered_url = tiers.url
    else:
        async with engine.bulk.locating:
            results = await engine.plane.locate_batches(asked, limit)
        for answer, result in zip(answers, results, strict=True):
            _fill(answer, result, keys)
    response.object_keys = list(keys)
    return response


class _Keys(dict[str, int]):
    """The place of each object in a response."""

    def place(self, key: str) -> int:
        return self.setdefault(key, len(self))


def _range(context: RequestContext, wanted: LocateRange, *, wal_only: bool) -> RangeRequest:
    topic = _readable(context, wanted.topic_name)
    if wanted.topic_id not in (ZERO_UUID, topic.topic_id):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"{wanted.topic_name} was deleted and created again."
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
        wal_only,
    )


def _fill(answer: located.LocatedRange, result: LocatedRange, keys: _Keys) -> None:
    answer.error_code = result.error
    answer.log_start_offset = result.log_start_offset
    answer.high_watermark = result.high_watermark
    answer.next_offset = result.next_offset
    answer.batches = [_located(batch.extent, batch.stamp, keys) for batch in result.batches]


def _located(extent: Extent, stamp: Stamp, keys: _Keys) -> located.LocatedBatch:
    stamped = stamp.timestamp_type == LOG_APPEND_TIME
    return located.LocatedBatch(
        keys.place(extent.object_key),
        extent.byte_offset,
        extent.byte_size,
        stamp.base_offset,
        stamp.last_offset,
        stamp.log_append_timestamp if stamped else -1,
        stamp.timestamp,
        stamp.timestamp_type,
    )


def _tiered(extent: locating.Extent, tiers: TieredRanges, keys: _Keys) -> located.LocatedBatch:
    key = tiers.key_of(extent)
    return located.LocatedBatch(
        -1 if key is None else keys.place(key),
        extent.start,
        extent.end - extent.start,
        extent.base_offset,
        extent.last_offset,
        max_timestamp=extent.segment.max_timestamp_ms,
        region=Region.BROKER if key is None else Region.TIERED,
        segment_size=extent.segment.size,
    )


def locate_batches_failed(
    request: LocateBatchesRequest, error: KafkaError
) -> located.LocateBatchesResponse:
    return located.LocateBatchesResponse(
        ranges=[located.LocatedRange(error.code, error.message) for _ in request.ranges]
    )
