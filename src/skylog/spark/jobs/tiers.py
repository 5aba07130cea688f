"""What of diskless topics is in tiered segments, and where their WAL begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from skylog.client.bulk import PartitionPlan
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.spark.jobs.cluster import RECORDS_GONE
from skylog.tiered.described import finished_segments
from skylog.tiered.segments import RemoteSegment


def wal_start(plan: PartitionPlan) -> int:
    """Where a plan of the WAL begins."""
    return plan.splits[0].start_offset if plan.splits else plan.high_watermark


def records_before(wal_start_offset: int, segment: RemoteSegment) -> int:
    """Records of a segment that are not in the WAL as well."""
    return max(min(segment.end_offset + 1, wal_start_offset) - segment.start_offset, 0)


async def tiered_partitions(
    cluster: Cluster, topics: Iterable[TopicInfo], plans: Iterable[PartitionPlan]
) -> AsyncIterator[tuple[TopicInfo, PartitionPlan, list[RemoteSegment]]]:
    """The finished segments of each diskless partition of a topic that is tiered."""
    by_name = {topic.name: topic for topic in topics}
    for plan in plans:
        topic = by_name.get(plan.topic)
        if topic is None or not plan.diskless:
            continue
        try:
            yield topic, plan, await finished_segments(cluster, topic, plan.partition)
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_REQUEST and error.code not in RECORDS_GONE:
                raise
            del by_name[plan.topic]  # not tiered, or deleted meanwhile


async def segments_of(cluster: Cluster, topic: TopicInfo, index: int) -> list[RemoteSegment]:
    """Those of a topic that was tiered; none if it is deleted meanwhile."""
    try:
        return await finished_segments(cluster, topic, index)
    except KafkaError as error:
        if error.code not in RECORDS_GONE:
            raise
        return []
