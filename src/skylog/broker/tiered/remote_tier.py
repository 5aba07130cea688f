"""What followers need of remote segments: the epochs and the producers at their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.store import ObjectError
from skylog.replication.tier_state import RemoteState
from skylog.tiered.segments import IndexType, TopicIdPartition

if TYPE_CHECKING:
    from skylog.replication.partition import Partition
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.ports import RemoteLogs, RemoteStorage


class StoredTier:
    """Fills ``replication.ports.RemoteTier``."""

    def __init__(
        self,
        logs: RemoteLogs,
        storage: RemoteStorage,
        counts: TieredCounts,
        from_last_tiered_offset: Callable[[], bool],
    ) -> None:
        self._logs = logs
        self._storage = storage
        self._counts = counts
        self._from_last_tiered_offset = from_last_tiered_offset

    @property
    def from_last_tiered_offset(self) -> bool:
        return self._from_last_tiered_offset()

    async def state_at(self, partition: Partition, epoch: int, offset: int) -> RemoteState | None:
        key = TopicIdPartition(partition.topic_id, partition.index)
        remote = self._logs.get(key)
        if remote is None:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, f"remote segments of {partition} are not known yet"
            )
        segment = remote.segment_for(epoch, offset)
        if segment is None:
            return None
        try:
            epochs = await self._storage.fetch_index(segment, IndexType.LEADER_EPOCH)
            snapshot = await self._storage.fetch_index(segment, IndexType.PRODUCER_SNAPSHOT)
        except ObjectError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"remote segment {segment.id} of {partition}: {error}",
            ) from error
        return RemoteState(segment.start_offset, segment.end_offset, bytes(epochs), bytes(snapshot))

    def rebuilt(self, topic: str, error: KafkaError | None) -> None:
        counts = self._counts.of(topic)
        counts.aux_state_requests += 1
        if error is not None:
            counts.aux_state_errors += 1
