"""What bulk readers and writers ask of a control plane; a part of its contract. Pure: types only.

*Ranges*: readers plan pieces of about the same size and then ask where the batches of a piece lie.
*Pins*: a writer's staged objects wait for their commit, longer than others may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid

if TYPE_CHECKING:
    from skylog.diskless.batch import BatchCoordinate
    from skylog.diskless.plane import TopicPartition

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
    """``end_offset`` is where the range ends, ``next_offset`` how far this result extends."""

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


class BulkPlane(Protocol):
    """See ``plane.ControlPlane``."""

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        """Pieces of ranges, in order; the nth begins at the first batch with n ``split_bytes``
        (> 0) before it.

        Goes through ``max_batches`` (> 0) at most, in request order: a range of which
        ``next_offset`` is not yet its end is asked for again from there. Errors as in a find, also
        for an end above the high watermark.
        """

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        """The batches of ranges, under the same rules."""

    async def pin_files(self, pins: Sequence[PinRequest]) -> list[KafkaError | None]:
        """Keep staged objects until their pins expire; again: the later end holds.

        INVALID_REQUEST for what is no staged key, lives too long, or was created too long ago and
        is not pinned; UNKNOWN_TOPIC_OR_PARTITION for a partition without coordinator.
        """

    async def release_pins(self, keys: Sequence[str]) -> None:
        """Release pins; unknown ones are ignored."""
