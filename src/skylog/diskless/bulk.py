"""Requests of bulk readers and writers to a control plane; part of its contract. Pure: types only.

*Ranges*: readers plan pieces of about the same size and then ask where the batches of a piece are.
*Pins*: a writer's staged objects may wait longer for their commit than others.
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
    """Offsets of a partition, without batches whose records are all older than
    ``min_timestamp``.

    FROM_LOG_START is the first offset in WAL objects: what is only in tiered storage is left out,
    and the result's ``wal_start_offset`` says up to where.

    ``wal_only`` is for brokers, who put tiered segments before the WAL: it leaves them out.
    """

    topic_id: Uuid
    partition: int
    start_offset: int = FROM_LOG_START
    end_offset: int = TO_HIGH_WATERMARK
    min_timestamp: int = -1
    wal_only: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic_id, self.partition


class PlannedSplit(NamedTuple):
    """``region``: where its bytes are, by a number of the bulk APIs; 0 is the WAL here."""

    start_offset: int
    end_offset: int
    byte_size: int
    region: int = 0


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """``end_offset`` is where the range ends, ``next_offset`` how far this result extends.

    ``wal_start_offset`` is never below the log start; only tiered storage has what is in between,
    up to the requested end. It is -1 where there are no WAL objects, or the partition is unknown.
    """

    error: ErrorCode
    splits: Sequence[PlannedSplit] = ()
    next_offset: int = -1
    end_offset: int = -1
    skipped_bytes: int = 0
    log_start_offset: int = -1
    high_watermark: int = -1
    wal_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class LocatedRange:
    """Like a ``PlannedRange``, with the batches themselves."""

    error: ErrorCode
    batches: Sequence[BatchCoordinate] = ()
    next_offset: int = -1
    end_offset: int = -1
    log_start_offset: int = -1
    high_watermark: int = -1
    wal_start_offset: int = -1


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

        Scans at most ``max_batches`` (> 0), in request order: a range whose ``next_offset`` is not
        its end is requested again from there. Errors as in a find, also for an end above the high
        watermark; so a start below the WAL start is OFFSET_MOVED_TO_TIERED_STORAGE, unless it is
        FROM_LOG_START. Such a range that ends below the WAL start is empty, and ends there.
        """

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        """The batches of ranges, under the same rules."""

    async def pin_files(self, pins: Sequence[PinRequest]) -> list[KafkaError | None]:
        """Keep staged objects until their pins expire; of several pins the latest expiry counts.

        INVALID_REQUEST for a key that is not of a staged object, for a pin that lasts too long, and
        for an unpinned object created too long ago; UNKNOWN_TOPIC_OR_PARTITION for a partition
        without coordinator.
        """

    async def release_pins(self, keys: Sequence[str]) -> None:
        """Release pins; unknown ones are ignored."""
