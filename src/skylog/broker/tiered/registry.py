"""What the leaders of partitions know of remote segments: for the scan for orphans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.orphans import KnownSegments
from skylog.tiered.segments import SegmentState
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from skylog.broker.net.peers import BrokerPeers
    from skylog.controller.image import ClusterImage
    from skylog.kernel.ids import Uuid
    from skylog.replication.manager import ReplicaManager
    from skylog.replication.partition import Partition
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.segments import TopicIdPartition

_LANE: Final = "remote-log-registry"
_PAGE: Final = 1000
_LATEST: Final = -1
_EARLIEST: Final = -2
_EARLIEST_LOCAL: Final = -4


@dataclass(frozen=True, slots=True)
class ClusterRegistry:
    """Implements ``tiered.orphans.Registry``: this broker's own replicas, or requests to others."""

    image: ClusterImage
    replicas: ReplicaManager
    logs: RemoteLogs
    peers: BrokerPeers

    def topic_exists(self, topic_id: Uuid) -> bool:
        return self.image.topic_by_id(topic_id) is not None

    async def known_segments(self, partition: TopicIdPartition) -> KnownSegments | None:
        topic = self.image.topic_by_id(partition.topic_id)
        state = topic.partitions.get(partition.partition_index) if topic is not None else None
        if topic is None or state is None:
            return None
        replica = self.replicas.get(topic.name, partition.partition_index)
        if replica is not None and replica.is_leader:
            remote = self.logs.get(partition)
            return None if remote is None else known_here(replica, remote)
        if state.leader < 0:
            return None
        return await self._ask(state.leader, topic.name, partition)

    async def _ask(self, leader: int, topic: str, partition: TopicIdPartition) -> KnownSegments:
        request = DescribeRemoteLogRequest(
            topic_id=partition.topic_id, partition_index=partition.partition_index, limit=_PAGE
        )
        ids: set[Uuid] = set()
        ranges: list[tuple[int, int]] = []
        # The offsets first: a segment that is copied and dropped meanwhile is in either answer.
        offsets = [
            await self._offset(leader, topic, partition.partition_index, timestamp)
            for timestamp in (_EARLIEST, _EARLIEST_LOCAL, _LATEST)
        ]
        start, local_start, end = offsets
        more = True
        while more:
            page = await self.peers.send(leader, request, lane=_LANE)
            _check(page.error_code, page.error_message)
            for segment in page.segments:
                ids.add(segment.segment_id)
                if segment.remote_log_segment_state == SegmentState.COPY_FINISHED:
                    ranges.append((segment.start_offset, segment.end_offset + 1))
            more = page.has_more and bool(page.segments)
            if more:
                request.start_offset = page.segments[-1].start_offset
                request.after_segment_id = page.segments[-1].segment_id
        return KnownSegments(frozenset(ids), start, [*ranges, (local_start, end)])

    async def _offset(self, leader: int, topic: str, index: int, timestamp: int) -> int:
        wanted = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [wanted])])
        answer = (await self.peers.send(leader, request, lane=_LANE)).topics[0].partitions[0]
        _check(answer.error_code, None)
        return int(answer.offset)


def known_here(replica: Partition, remote: RemoteLog) -> KnownSegments:
    """The answer of a leader on this broker."""
    log, segments = replica.log, list(remote.all())
    ranges = [
        (segment.start_offset, segment.end_offset + 1)
        for segment in segments
        if segment.state is SegmentState.COPY_FINISHED
    ]
    ranges.append((log.local_log_start_offset, log.log_end_offset))
    return KnownSegments(frozenset(one.id for one in segments), log.log_start_offset, ranges)


def _check(error_code: int, message: str | None) -> None:
    if error_code:
        raise KafkaError(ErrorCode(error_code), message)
