"""What a follower asks its leader besides records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replication.follower import EpochEnd
from skylog.replication.tier_state import LeaderOffset
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skylog.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

if TYPE_CHECKING:
    from skylog.replication.partition import Partition
    from skylog.replication.ports import Peers


@dataclass(frozen=True, slots=True)
class LeaderQuestions:
    """Asks one leader; errors of a partition are raised."""

    peers: Peers
    node_id: int
    leader_id: int
    lane: str

    async def offset(self, partition: Partition, epoch: int, timestamp: int) -> LeaderOffset:
        """ListOffsets, in the partition's leader epoch as the follower knows it."""
        wanted = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self.node_id, topics=[ListOffsetsTopic(partition.topic, [wanted])]
        )
        response = await self.peers.send(self.leader_id, request, lane=self.lane)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return LeaderOffset(int(answer.offset), int(answer.leader_epoch))

    async def epoch_end(self, partition: Partition, epoch: int, wanted_epoch: int) -> EpochEnd:
        """The largest epoch up to ``wanted_epoch`` that the leader has, and its end."""
        wanted = OffsetForLeaderPartition(partition.index, epoch, wanted_epoch)
        request = OffsetForLeaderEpochRequest(
            self.node_id, [OffsetForLeaderTopic(partition.topic, [wanted])]
        )
        response = await self.peers.send(self.leader_id, request, lane=self.lane)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return EpochEnd(int(answer.leader_epoch), int(answer.end_offset))
