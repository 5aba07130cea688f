"""The finished segments of a partition, as its leader tells them with API 512."""

from __future__ import annotations

from skylog.client.admin.tiered import TieredAdmin
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo
from skylog.tiered.metadata.records import segment_of
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition


async def finished_segments(cluster: Cluster, topic: TopicInfo, index: int) -> list[RemoteSegment]:
    """By their first offset. INVALID_REQUEST if the topic has no remote storage."""
    partition = TopicIdPartition(topic.topic_id, index)
    return [
        segment_of(topic.name, partition, one)
        for one in await TieredAdmin(cluster).segments(topic, index, finished_only=True)
        if one.remote_log_segment_state == SegmentState.COPY_FINISHED
    ]
