"""What is asked of remote segments, what a read of them needs on its way, and what it returns.

Pure: types only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.aborted import AbortedTransaction
from skylog.log.checkpoints import EpochStart
from skylog.tiered.reading.tables import OffsetTable, TimeTable
from skylog.tiered.segments import IndexType, RemoteSegment, TopicIdPartition
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer


class Segments(Protocol):
    """The segments of a partition: ``metadata.machine.RemoteLog``. Only ``segments`` also has
    some that are not finished."""

    def segment_for(self, epoch: int, offset: int) -> RemoteSegment | None: ...
    def segments(self, epoch: int) -> Iterable[RemoteSegment]: ...
    def next_with_txn_index(self, epoch: int, offset: int) -> RemoteSegment | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRead:
    """One partition of a fetch. ``epochs`` is the lineage of the log that is read."""

    topic: str
    partition: TopicIdPartition
    offset: int
    bytes_max: int
    epochs: tuple[EpochStart, ...]
    min_one: bool = True
    read_committed: bool = False


class RemoteData(NamedTuple):
    """Whole batches, by reference to what they were read in.

    ``aborted_from`` and ``aborted_to``: the range of aborted transactions, still to be searched
    for in the local log; −1 if all were found, or none were asked for. Without ``parts`` and with a
    ``next_offset`` behind the one asked for, there is no batch below that one.
    """

    parts: Sequence[Buffer]
    size: int
    first_offset: int
    next_offset: int
    aborted: Sequence[AbortedTransaction] = ()
    aborted_from: int = -1
    aborted_to: int = -1


class TimeSearch(NamedTuple):
    """The first record at or after ``timestamp`` and at or after ``offset_min``.

    Only in segments that begin below ``local_start``: the others are searched in the local log.
    """

    timestamp: int
    offset_min: int
    local_start: int
    epochs: tuple[EpochStart, ...]


class FoundRecord(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class HoleError(KafkaError):
    """No finished segment has an offset at or above the log start."""

    def __init__(self, partition: TopicIdPartition, offset: int) -> None:
        super().__init__(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"no remote segment of topic {partition.topic_id}, partition "
            f"{partition.partition_index}, has offset {offset}",
        )


class DamagedSegmentError(KafkaError):
    """The store returned wrong bytes twice."""

    def __init__(self, segment: RemoteSegment, what: str) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"remote segment {segment.start_offset}-{segment.id} of "
            f"{segment.topic}-{segment.partition.partition_index} is damaged: {what}",
        )


# --- What a read needs ----------------------------------------------------------------------------


class Index(NamedTuple):
    """Answered by a table. For ``TRANSACTION``, an empty one if the segment has no such index.

    None: it is damaged.
    """

    segment: RemoteSegment
    kind: IndexType


class Bytes(NamedTuple):
    """Answered by chunks that cover the range, in order and without gaps."""

    segment: RemoteSegment
    start: int
    end: int


class Forget(NamedTuple):
    """Wrong bytes: the same is asked of the store again. Answered by None."""

    segment: RemoteSegment
    start: int
    end: int


class Keep(NamedTuple):
    """Indexes that were rebuilt. Answered by None."""

    segment: RemoteSegment
    offsets: OffsetTable
    times: TimeTable


class Search(NamedTuple):
    """Look for a record in a batch, which may have to be decompressed.

    Answered by (offset, timestamp) or None.
    """

    batch: Batch
    timestamp: int
    offset_min: int


Need: TypeAlias = Index | Bytes | Forget | Keep | Search
