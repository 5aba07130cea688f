"""Requests and results of bulk readers and writers. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid


class Region(IntEnum):
    """Where bytes are. The number is that of the messages."""

    TOPIC = 0  # as the topic says: WAL objects of a diskless one, else with its brokers
    BROKER = 1  # fetched from brokers, whatever the topic
    TIERED = 3  # a tiered segment


class Regions(IntEnum):
    """What a client asks for; 0 is a client that knows of no regions."""

    ALL = 1
    # What is tiered alone is left out.
    WAL = 2


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Offsets of a partition; -2 starts at the log's start, -1 ends at its high watermark.

    Batches whose records are all older than ``min_timestamp`` are skipped.
    """

    topic: str
    partition: int
    start_offset: int = -2
    end_offset: int = -1
    min_timestamp: int = -1


@dataclass(frozen=True, slots=True)
class Split:
    """The part of a partition that one task reads: about the requested number of bytes."""

    topic: str
    topic_id: Uuid
    partition: int
    start_offset: int
    end_offset: int
    bytes: int
    diskless: bool
    region: Region = Region.TOPIC

    @property
    def in_bucket(self) -> bool:
        """Whether its bytes need no broker."""
        if self.region is Region.TOPIC:
            return self.diskless
        return self.region is Region.TIERED


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The splits of a partition, in order; or its error, with the offsets if they are known."""

    topic: str
    topic_id: Uuid
    partition: int
    diskless: bool
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    log_start_offset: int = -1
    high_watermark: int = -1
    skipped_bytes: int = 0
    splits: tuple[Split, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """In the order of the ranges. ``storage_url`` is None if no bucket is in use."""

    storage_url: str | None
    partitions: tuple[PartitionPlan, ...]


@dataclass(frozen=True, slots=True)
class BatchLocation:
    """Where a batch is, and the offsets of its records.

    In a tiered segment, of ``segment_size`` bytes: where all batches with these offsets are. Whole
    batches begin there; the first and the last may have other offsets, too. Without an object, the
    offsets are fetched from a broker.
    """

    object_key: str
    byte_offset: int
    byte_size: int
    base_offset: int
    last_offset: int
    log_append_timestamp: int
    max_timestamp: int
    timestamp_type: int
    region: Region = Region.TOPIC
    segment_size: int = 0


@dataclass(frozen=True, slots=True)
class Located:
    """``next_offset``: where to continue; the split's end when it is done. ``tiered_url``: the
    store of tiered segments, if there are some."""

    batches: tuple[BatchLocation, ...]
    next_offset: int
    log_start_offset: int
    high_watermark: int
    tiered_url: str | None = None


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One record batch in a staged object."""

    topic: str
    topic_id: Uuid
    partition: int
    byte_offset: int
    byte_size: int


@dataclass(frozen=True, slots=True)
class StagedObject:
    """An uploaded object, and its batches in the order in which they get offsets."""

    key: str
    size: int
    batches: tuple[StagedBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class StagingInfo:
    """The bucket, and the prefix under which this client's user may stage."""

    storage_url: str | None
    prefix: str


@dataclass(frozen=True, slots=True)
class PinResult:
    error: ErrorCode
    message: str | None = None
    expires_ms: int = -1


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """``log_append_time`` is -1 for CreateTime. ``duplicate``: it was committed before."""

    error: ErrorCode
    message: str | None = None
    base_offset: int = -1
    log_append_time: int = -1
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class CommitStagedResult:
    """All batches of an object are committed, or none."""

    error: ErrorCode
    message: str | None = None
    batches: tuple[CommittedBatch, ...] = ()
