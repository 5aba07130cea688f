"""What bulk readers and writers ask of a control plane (``plane.py`` has the contract). Pure data.

*Ranges*: readers plan pieces of about the same size and then ask where the batches of a piece lie.
*Pins*: a writer's staged objects wait for their commit, longer than others may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skylog.diskless.plane import BatchCoordinate, TopicPartition
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid

FROM_LOG_START: Final = -2
TO_HIGH_WATERMARK: Final = -1


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Offsets of a partition; batches whose records are all older than ``min_timestamp`` not."""

    topic_id: Uuid
    partition: int
    start_offset: int = FROM_LOG_START
    end_offset: int = TO_HIGH_WATERMARK
    min_timestamp: int = -1

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic_id, self.partition


class PlannedSplit(NamedTuple):
    start_offset: int
    end_offset: int
    byte_size: int


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """``end_offset`` is where the range ends, ``next_offset`` how far this answer has come."""

    error: ErrorCode
    splits: Sequence[PlannedSplit] = ()
    next_offset: int = -1
    end_offset: int = -1
    skipped_bytes: int = 0
    log_start_offset: int = -1
    high_watermark: int = -1


@dataclass(frozen=True, slots=True)
class LocatedRange:
    """As a ``PlannedRange``, with the batches themselves."""

    error: ErrorCode
    batches: Sequence[BatchCoordinate] = ()
    next_offset: int = -1
    end_offset: int = -1
    log_start_offset: int = -1
    high_watermark: int = -1


@dataclass(frozen=True, slots=True)
class PinRequest:
    """A staged object and the partitions that it has batches for."""

    object_key: str
    writer_id: str
    epoch: int
    expires_ms: int
    partitions: Sequence[TopicPartition]


class PinInfo(NamedTuple):
    """A pin that has not expired. ``committed``: the object has been committed meanwhile."""

    writer_id: str
    epoch: int
    expires_ms: int
    committed: bool
