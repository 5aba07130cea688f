"""Pure: the records of ``__remote_log_metadata``, built from and turned into segments."""

from __future__ import annotations

from skylog.log.checkpoints import EpochStart
from skylog.tiered.segments import (
    PartitionDeleteState,
    RemoteSegment,
    SegmentState,
    TopicIdPartition,
)
from skylog.wire.messages import remote_log_segment_metadata_record as wire_segment
from skylog.wire.messages import remote_log_segment_metadata_update_record as wire_update
from skylog.wire.messages import remote_partition_delete_metadata_record as wire_deletion
from skylog.wire.messages.describe_remote_log_response import DescribedRemoteSegment
from skylog.wire.messages.remote_log_segment_metadata_record import (
    RemoteLogSegmentMetadataRecord as SegmentRecord,
)
from skylog.wire.messages.remote_log_segment_metadata_snapshot_record import (
    RemoteLogSegmentMetadataSnapshotRecord as SnapshotRecord,
)
from skylog.wire.messages.remote_log_segment_metadata_snapshot_record import (
    SegmentLeaderEpochEntry,
)
from skylog.wire.messages.remote_log_segment_metadata_update_record import (
    RemoteLogSegmentMetadataUpdateRecord as UpdateRecord,
)
from skylog.wire.messages.remote_partition_delete_metadata_record import (
    RemotePartitionDeleteMetadataRecord as DeletionRecord,
)
from skylog.wire.schema import Message

NO_EPOCH = -1
NO_OFFSET = -1
# By number: calling the class takes as long as decoding a record.
_STATES = tuple(SegmentState)


def segment_started(segment: RemoteSegment, log_start_offset: int = NO_OFFSET) -> SegmentRecord:
    """Record 0. A segment begins in state COPY_STARTED, whatever ``segment`` says."""
    partition = segment.partition
    return SegmentRecord(
        wire_segment.RemoteLogSegmentIdEntry(
            wire_segment.TopicIdPartitionEntry(
                segment.topic, partition.topic_id, partition.partition_index
            ),
            segment.id,
        ),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        broker_id=segment.broker_id,
        max_timestamp_ms=segment.max_timestamp_ms,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_leader_epochs=[
            wire_segment.SegmentLeaderEpochEntry(epoch, start) for epoch, start in segment.epochs
        ],
        segment_size_in_bytes=segment.size,
        custom_metadata=segment.custom_metadata,
        txn_index_empty=segment.txn_index_empty,
        copier_epoch=segment.copier_epoch,
        log_start_offset=log_start_offset,
    )


def segment_updated(
    segment: RemoteSegment,
    state: SegmentState,
    *,
    broker_id: int,
    now_ms: int,
    copier_epoch: int = NO_EPOCH,
    log_start_offset: int = NO_OFFSET,
) -> UpdateRecord:
    """Record 1. Never COPY_STARTED: such an update ends the thread of Kafka that reads it."""
    partition = segment.partition
    return UpdateRecord(
        wire_update.RemoteLogSegmentIdEntry(
            wire_update.TopicIdPartitionEntry(
                segment.topic, partition.topic_id, partition.partition_index
            ),
            segment.id,
        ),
        broker_id=broker_id,
        event_timestamp_ms=now_ms,
        custom_metadata=segment.custom_metadata,
        remote_log_segment_state=state,
        copier_epoch=copier_epoch,
        log_start_offset=log_start_offset,
    )


def partition_deleted(
    topic: str,
    partition: TopicIdPartition,
    state: PartitionDeleteState,
    *,
    broker_id: int,
    now_ms: int,
) -> DeletionRecord:
    """Record 2."""
    return DeletionRecord(
        wire_deletion.TopicIdPartitionEntry(topic, partition.topic_id, partition.partition_index),
        broker_id=broker_id,
        event_timestamp_ms=now_ms,
        remote_partition_delete_state=state,
    )


def partition_of(record: Message) -> TopicIdPartition | None:
    """The partition whose remote log a record changes; None for other records."""
    if isinstance(record, SegmentRecord | UpdateRecord):
        owner = record.remote_log_segment_id.topic_id_partition
        return TopicIdPartition(owner.id, owner.partition)
    if isinstance(record, DeletionRecord):
        target = record.topic_id_partition
        return TopicIdPartition(target.id, target.partition)
    return None


def is_valid(record: SegmentRecord) -> bool:
    """Whether a segment can be as the record says: Kafka's own checks, and ordered epochs."""
    if record.remote_log_segment_state != SegmentState.COPY_STARTED:
        return False
    if not 0 <= record.start_offset <= record.end_offset or record.segment_size_in_bytes < 0:
        return False
    last_epoch, last_offset = -1, -1
    for entry in record.segment_leader_epochs:
        if entry.leader_epoch <= last_epoch or entry.offset < last_offset:
            return False
        last_epoch, last_offset = entry.leader_epoch, entry.offset
    return last_epoch >= 0 and last_offset <= record.end_offset


def snapshot_of(record: SegmentRecord) -> SnapshotRecord:
    """The segment of a record 0 as a record 3; epochs do not begin below the segment."""
    start = record.start_offset
    return SnapshotRecord(
        record.remote_log_segment_id.id,
        start,
        record.end_offset,
        record.broker_id,
        record.max_timestamp_ms,
        record.event_timestamp_ms,
        [
            SegmentLeaderEpochEntry(entry.leader_epoch, max(entry.offset, start))
            for entry in record.segment_leader_epochs
        ],
        record.segment_size_in_bytes,
        record.custom_metadata,
        record.remote_log_segment_state,
        record.txn_index_empty,
        record.copier_epoch,
    )


def runs_of(record: SnapshotRecord) -> list[tuple[int, int, int]]:
    """(epoch, first offset, last offset) of a segment, without epochs that have no records."""
    runs = []
    end = record.end_offset
    for entry in reversed(record.segment_leader_epochs):
        if entry.offset <= end:
            runs.append((entry.leader_epoch, entry.offset, end))
            end = entry.offset - 1
    runs.reverse()
    return runs


def segment_of(
    topic: str, partition: TopicIdPartition, record: SnapshotRecord | DescribedRemoteSegment
) -> RemoteSegment:
    """From a record 3, or from what a broker tells with API 512; its state is a valid one."""
    epochs: tuple[EpochStart, ...] = tuple(
        [(entry.leader_epoch, entry.offset) for entry in record.segment_leader_epochs]
    )
    return RemoteSegment(
        topic=topic,
        partition=partition,
        id=record.segment_id,
        start_offset=record.start_offset,
        end_offset=record.end_offset,
        broker_id=record.broker_id,
        max_timestamp_ms=record.max_timestamp_ms,
        event_timestamp_ms=record.event_timestamp_ms,
        epochs=epochs,
        size=record.segment_size_in_bytes,
        state=_STATES[record.remote_log_segment_state],
        custom_metadata=record.custom_metadata,
        txn_index_empty=record.txn_index_empty,
        copier_epoch=record.copier_epoch,
    )
