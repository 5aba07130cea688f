"""What a remote segment is: a closed segment of a partition's log, copied to the object store.

Pure. Its life is a chain of records in ``__remote_log_metadata``; the states are Kafka's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from skylog.kernel.ids import Uuid
from skylog.log.checkpoints import EpochStart


class SegmentState(IntEnum):
    """The number is what the record holds."""

    COPY_STARTED = 0
    COPY_FINISHED = 1
    DELETE_STARTED = 2
    DELETE_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """How far the remote segments of a deleted partition are deleted."""

    MARKED = 0
    STARTED = 1
    FINISHED = 2


# The same state again is valid: an answer to the first record may have been lost.
TRANSITIONS: Final = {
    SegmentState.COPY_STARTED: {
        SegmentState.COPY_STARTED,
        SegmentState.COPY_FINISHED,
        SegmentState.DELETE_STARTED,
    },
    SegmentState.COPY_FINISHED: {SegmentState.COPY_FINISHED, SegmentState.DELETE_STARTED},
    SegmentState.DELETE_STARTED: {SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED},
    SegmentState.DELETE_FINISHED: {SegmentState.DELETE_FINISHED},
}


class IndexType(Enum):
    """What is stored of a segment beside its batches."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    PRODUCER_SNAPSHOT = "producerSnapshot"
    LEADER_EPOCH = "leaderEpoch"
    TRANSACTION = "transaction"


class TopicIdPartition(NamedTuple):
    """A partition, by the topic's id: a topic made anew under an old name is another one."""

    topic_id: Uuid
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSegment:
    """One remote segment, as its records describe it."""

    topic: str
    partition: TopicIdPartition
    id: Uuid
    start_offset: int
    # Inclusive, as in Kafka.
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    # (epoch, first offset). Never empty; the first offset is not below ``start_offset``.
    epochs: tuple[EpochStart, ...]
    size: int
    state: SegmentState = SegmentState.COPY_STARTED
    custom_metadata: bytes | None = None
    txn_index_empty: bool = False
    # The leader epoch of whoever wrote its last record; −1: written by Kafka.
    copier_epoch: int = -1
