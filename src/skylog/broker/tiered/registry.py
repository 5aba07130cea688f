"""What the leaders of partitions know of remote segments: for the scan for orphans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

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
    from skylog.diskless.plane import ControlPlane
    from skylog.kernel.ids import Uuid
    from skylog.replication.manager import ReplicaManager
    from skylog.replication.partition import Partition
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.segments import RemoteSegment, TopicIdPartition

_LANE: Final = "remote-log-registry"
_PAGE: Final = 1000
_LATEST: Final = -1
_EARLIEST: Final = -2
_EARLIEST_LOCAL: Final = -4


@dataclass(frozen=True, slots=True)
class ClusterRegistry:
    """Implements ``tiered.orphans.Registry``: this broker's own replicas, or requests to others."""

    node_id: int
    image: ClusterImage
    replicas: ReplicaManager
    logs: RemoteLogs
    peers: BrokerPeers
    plane: ControlPlane

    def topic_exists(self, topic_id: Uuid) -> bool:
        return self.image.topic_by_id(topic_id) is not None

    async def known_segments(self, partition: TopicIdPartition) -> KnownSegments | None:
        topic = self.image.topic_by_id(partition.topic_id)
        state = topic.partitions.get(partition.partition_index) if topic is not None else None
        if topic is None or state is None:
            return None
        if state.writes_diskless:
            return await self._consolidated(state.leader, partition)
        replica = self.replicas.get(topic.name, partition.partition_index)
        if replica is not None and replica.is_leader:
            remote = self.logs.get(partition)
            return None if remote is None else known_here(replica, remote)
        if state.leader < 0:
            return None
        # The offsets first: a segment that is copied and dropped meanwhile is in either answer.
        start, local_start, end = [
            await self._offset(state.leader, topic.name, partition.partition_index, timestamp)
            for timestamp in (_EARLIEST, _EARLIEST_LOCAL, _LATEST)
        ]
        return _known(start, (local_start, end), await self._ask(state.leader, partition))

    async def _consolidated(self, leader: int, partition: TopicIdPartition) -> KnownSegments | None:
        """Of a diskless partition the leader knows the segments, and the coordinator the rest: what
        of it is in the WAL."""
        # First the WAL, as above.
        (info,) = await self.plane.log_info([partition])
        if info.error or leader < 0:
            return None
        wal = info.wal_start_offset, info.high_watermark
        if leader != self.node_id:
            return _known(info.log_start_offset, wal, await self._ask(leader, partition))
        remote = self.logs.get(partition)
        if remote is None:
            return None
        return _known(info.log_start_offset, wal, [_entry(segment) for segment in remote.all()])

    async def _ask(self, leader: int, partition: TopicIdPartition) -> list[_Entry]:
        request = DescribeRemoteLogRequest(
            topic_id=partition.topic_id, partition_index=partition.partition_index, limit=_PAGE
        )
        found: list[_Entry] = []
        more = True
        while more:
            page = await self.peers.send(leader, request, lane=_LANE)
            _check(page.error_code, page.error_message)
            found += [
                _Entry(
                    one.segment_id,
                    (one.start_offset, one.end_offset + 1),
                    one.remote_log_segment_state == SegmentState.COPY_FINISHED,
                )
                for one in page.segments
            ]
            more = page.has_more and bool(page.segments)
            if more:
                request.start_offset = page.segments[-1].start_offset
                request.after_segment_id = page.segments[-1].segment_id
        return found

    async def _offset(self, leader: int, topic: str, index: int, timestamp: int) -> int:
        wanted = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [wanted])])
        answer = (await self.peers.send(leader, request, lane=_LANE)).topics[0].partitions[0]
        _check(answer.error_code, None)
        return int(answer.offset)


class _Entry(NamedTuple):
    """A segment that a leader knows; ``range`` with its end exclusive."""

    id: Uuid
    range: tuple[int, int]
    is_finished: bool


def _entry(segment: RemoteSegment) -> _Entry:
    offsets = segment.start_offset, segment.end_offset + 1
    return _Entry(segment.id, offsets, segment.state is SegmentState.COPY_FINISHED)


def _known(start: int, log: tuple[int, int], entries: Iterable[_Entry]) -> KnownSegments:
    """``log``: the offsets that the log has besides its remote segments."""
    every = list(entries)
    ranges = [entry.range for entry in every if entry.is_finished]
    return KnownSegments(frozenset(entry.id for entry in every), start, [*ranges, log])


def known_here(replica: Partition, remote: RemoteLog) -> KnownSegments:
    """The answer of a leader on this broker."""
    log = replica.log
    local = log.local_log_start_offset, log.log_end_offset
    return _known(log.log_start_offset, local, map(_entry, remote.all()))


def _check(error_code: int, message: str | None) -> None:
    if error_code:
        raise KafkaError(ErrorCode(error_code), message)
