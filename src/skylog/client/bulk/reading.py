"""Where a topic's bytes are: splits of about equal size, and the batches of a split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from skylog.client.bulk.ask import ANOTHER_TRY, code_of, leader_of, request_of_ours, settled
from skylog.client.bulk.types import (
    BatchLocation,
    Located,
    PartitionPlan,
    PartitionRange,
    Plan,
    Region,
    Regions,
    Split,
)
from skylog.client.cluster import Cluster
from skylog.client.errors import error_of
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import BULK_LOCATED_BATCHES_MAX, BULK_PARTITIONS_PER_REQUEST
from skylog.wire.messages import plan_ranges_request as plan_request
from skylog.wire.messages import plan_ranges_response as plan_response
from skylog.wire.messages.locate_batches_request import LocateBatchesRequest, LocateRange
from skylog.wire.messages.locate_batches_response import LocateBatchesResponse, LocatedBatch

# How long a broker may plan, in addition to the usual time-out.
_PLAN_MS: Final = 300_000
_REGIONS: Final = frozenset(Region)


async def plan_ranges(
    cluster: Cluster,
    ranges: Sequence[PartitionRange],
    split_bytes: int,
    regions: Regions = Regions.ALL,
) -> Plan:
    """Split ranges by bytes, between batches; tiered segments at any offset. Errors are per
    partition."""
    url: str | None = None

    async def ask(places: Sequence[int], plans: list[PartitionPlan | None]) -> None:
        nonlocal url
        by_leader: dict[int, list[int]] = {}
        for place in places:
            one = TopicPartition(ranges[place].topic, ranges[place].partition)
            by_leader.setdefault(await leader_of(cluster, one), []).append(place)
        for node_id, held in by_leader.items():
            for first in range(0, len(held), BULK_PARTITIONS_PER_REQUEST):
                part = held[first : first + BULK_PARTITIONS_PER_REQUEST]
                request = _plan_request([ranges[place] for place in part], split_bytes, regions)
                answer = await request_of_ours(cluster, node_id, request, _PLAN_MS)
                url = answer.storage_url or url
                for place, plan in zip(part, _planned(answer), strict=True):
                    plans[place] = plan
                    if plan.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        cluster.metadata.forget(plan.topic)

    plans = await settled(cluster, len(ranges), ask)
    return Plan(url, tuple(plans))


def _plan_request(
    ranges: Sequence[PartitionRange], split_bytes: int, regions: Regions
) -> plan_request.PlanRangesRequest:
    """One topic entry per range, so that the responses have the same order."""
    return plan_request.PlanRangesRequest(
        split_bytes,
        [
            plan_request.PlanTopic(
                one.topic,
                [
                    plan_request.PlanPartition(
                        one.partition, one.start_offset, one.end_offset, one.min_timestamp
                    )
                ],
            )
            for one in ranges
        ],
        regions,
    )


def _planned(answer: plan_response.PlanRangesResponse) -> Iterator[PartitionPlan]:
    for topic in answer.topics:
        for partition in topic.partitions:
            failed = topic if topic.error_code else partition
            yield PartitionPlan(
                topic.name,
                topic.topic_id,
                partition.partition_index,
                topic.diskless,
                code_of(failed.error_code),
                failed.error_message,
                partition.log_start_offset,
                partition.high_watermark,
                partition.skipped_bytes,
                tuple(
                    Split(
                        topic.name,
                        topic.topic_id,
                        partition.partition_index,
                        split.start_offset,
                        split.end_offset,
                        split.bytes,
                        topic.diskless,
                        _region(split.region),
                    )
                    for split in partition.splits
                ),
            )


async def locate_batches(
    cluster: Cluster,
    split: Split,
    *,
    start_offset: int | None = None,
    min_timestamp: int = -1,
    max_batches: int = BULK_LOCATED_BATCHES_MAX,
    regions: Regions = Regions.ALL,
) -> Located:
    """The next batches of a split of a diskless topic; raises its error.

    UNKNOWN_TOPIC_ID: the topic was deleted and created again since the split was planned.
    """
    position = split.start_offset if start_offset is None else start_offset
    request = _locate_request([(split, position)], min_timestamp, max_batches, regions)

    async def ask() -> Located | KafkaError:
        node_id = await leader_of(cluster, TopicPartition(split.topic, split.partition))
        (found,) = _located(await request_of_ours(cluster, node_id, request, 0))
        if isinstance(found, KafkaError) and found.code in ANOTHER_TRY:
            raise found
        return found

    outcome = await cluster.retry(ask)
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


async def locate_many(
    cluster: Cluster,
    wanted: Sequence[tuple[Split, int]],
    *,
    min_timestamp: int = -1,
    max_batches: int = BULK_LOCATED_BATCHES_MAX,
) -> list[Located | KafkaError | None]:
    """The next batches of many splits, each from an offset on: one request per leader.

    This is a single attempt. What failed, or is None because the response was full, is left to
    ``locate_batches``, which retries.
    """
    by_leader: dict[int, list[int]] = {}
    for place, (split, _) in enumerate(wanted):
        leader = await leader_of(cluster, TopicPartition(split.topic, split.partition))
        by_leader.setdefault(leader, []).append(place)
    found: list[Located | KafkaError | None] = [None] * len(wanted)
    for node_id, places in by_leader.items():
        asked = [wanted[place] for place in places]
        request = _locate_request(asked, min_timestamp, max_batches, Regions.ALL)
        answer = await request_of_ours(cluster, node_id, request, 0)
        for place, result in zip(places, _located(answer), strict=True):
            late = isinstance(result, Located) and result.next_offset <= wanted[place][1]
            found[place] = None if late else result
    return found


def _locate_request(
    wanted: Sequence[tuple[Split, int]], min_timestamp: int, max_batches: int, regions: Regions
) -> LocateBatchesRequest:
    return LocateBatchesRequest(
        max_batches,
        [
            LocateRange(
                split.topic,
                split.topic_id,
                split.partition,
                start_offset,
                split.end_offset,
                min_timestamp,
            )
            for split, start_offset in wanted
        ],
        regions,
    )


def _located(answer: LocateBatchesResponse) -> Iterator[Located | KafkaError]:
    for found in answer.ranges:
        error = error_of(found.error_code, found.error_message)
        if error is not None:
            yield error
            continue
        yield Located(
            tuple(
                BatchLocation(
                    _key(answer, batch),
                    batch.byte_offset,
                    batch.byte_size,
                    batch.base_offset,
                    batch.last_offset,
                    batch.log_append_timestamp,
                    batch.max_timestamp,
                    batch.timestamp_type,
                    _region(batch.region),
                    batch.segment_size,
                )
                for batch in found.batches
            ),
            found.next_offset,
            found.log_start_offset,
            found.high_watermark,
            answer.tiered_url,
        )


def _region(number: int) -> Region:
    """One that this release does not know is left to the brokers, which do."""
    return Region(number) if number in _REGIONS else Region.BROKER


def _key(answer: LocateBatchesResponse, batch: LocatedBatch) -> str:
    if _region(batch.region) is Region.BROKER:
        return ""
    if not 0 <= batch.object_index < len(answer.object_keys):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch in object {batch.object_index} of the answer"
        )
    return answer.object_keys[batch.object_index]
