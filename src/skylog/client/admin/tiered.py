"""Remote logs of partitions, with skylog's own API 512."""

from __future__ import annotations

from typing import Any, Final

from skylog.client.bulk.ask import leader_of, request_of_ours
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest
from skylog.wire.messages.describe_remote_log_response import (
    DescribedRemoteSegment,
    DescribeRemoteLogResponse,
)

_PAGE: Final = 1000


class TieredAdmin:
    """Remote segments as the leaders of their partitions know them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def segments(
        self, topic: TopicInfo, partition: int, *, finished_only: bool = False
    ) -> list[DescribedRemoteSegment]:
        """The segments of a partition, by their first offset."""
        request = DescribeRemoteLogRequest(
            topic_id=topic.topic_id,
            partition_index=partition,
            limit=_PAGE,
            finished_only=finished_only,
        )
        found: list[DescribedRemoteSegment] = []
        while True:
            page = await self._ask(TopicPartition(topic.name, partition), request)
            found += page.segments
            if not page.has_more or not page.segments:
                return found
            request.start_offset = found[-1].start_offset
            request.after_segment_id = found[-1].segment_id

    async def _ask(
        self, partition: TopicPartition, request: DescribeRemoteLogRequest
    ) -> DescribeRemoteLogResponse:
        async def ask() -> Any:
            leader = await leader_of(self._cluster, partition)
            answer = await request_of_ours(self._cluster, leader, request, 0)
            check(answer.error_code, answer.error_message)
            return answer

        answer: DescribeRemoteLogResponse = await self._cluster.retry(ask)
        return answer
