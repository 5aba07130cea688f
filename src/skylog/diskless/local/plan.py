"""Decisions of the local filler: where a fetch is answered, and what is copied next. Pure.

A partition's offsets fall into half-open regions: only objects have what is below the local copy;
the copy has [start, end); and its end is the tail while the copy keeps up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from skylog.diskless.plane import LogInfo
from skylog.diskless.regions import Region, Source, source_of

T = TypeVar("T")

# A copy's segments: small enough that dropping the oldest is a small step.
SEGMENTS_PER_COPY: Final = 4
SEGMENT_BYTES_MIN: Final = 16 * 1024
# Partitions of one round, and its limits per partition and in total.
ROUND_PARTITIONS_MAX: Final = 500
ROUND_PARTITION_BYTES: Final = 1024 * 1024
ROUND_BYTES: Final = 8 * 1024 * 1024
# Concurrent rounds; those that catch up leave room for those with waiting fetches.
TAIL_ROUNDS_MAX: Final = 4
CATCH_UP_ROUNDS_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class LocalLimits:
    """The limits of copies. All partitions share ``bytes_max`` evenly."""

    partition_bytes: int
    bytes_max: int
    retention_ms: int = -1


class Sizes(NamedTuple):
    """Of one copy: all segments but the last fit into ``kept_bytes``."""

    copy_bytes: int
    segment_bytes: int

    @property
    def kept_bytes(self) -> int:
        return max(self.copy_bytes - self.segment_bytes, 0)


class Resume(NamedTuple):
    """Where copying continues, and whether the existing copy is kept."""

    offset: int
    keep: bool


def copy_answers(offset: int, region: Region | None, *, following: bool) -> Source:
    """LOCAL or TAIL if the copy answers a fetch at ``offset``, WAL if not.

    A copy that keeps up knows the log's end, unless everything it had was deleted.
    """
    tail = None
    if following and region is not None and region.start <= region.end:
        tail = region.end
    return source_of(offset, ((Source.LOCAL, region),), tail)


def sizes(limits: LocalLimits, partitions: int) -> Sizes:
    """A partition's share of the disk, never more than its own limit."""
    share = min(limits.partition_bytes, limits.bytes_max // max(partitions, 1))
    return Sizes(share, max(share // SEGMENTS_PER_COPY, SEGMENT_BYTES_MIN))


def newest(info: LogInfo, copy_bytes: int) -> int:
    """The offset from which WAL objects have about ``copy_bytes``, by their average record size;
    what is older is only in tiered storage, and is not copied."""
    count = info.high_watermark - info.wal_start_offset
    if info.byte_size <= copy_bytes:
        return info.wal_start_offset
    return info.high_watermark - count * copy_bytes // info.byte_size


def resume(region: Region | None, info: LogInfo, copy_bytes: int) -> Resume:
    """Whether to continue a copy, and where, given the plane's state of its partition.

    A copy that reaches beyond the high watermark is of another history. If the gap after a copy is
    so large that filling it would push the copy out, it is not worth filling.
    """
    wanted = newest(info, copy_bytes)
    if region is None or not wanted <= region.end <= info.high_watermark:
        return Resume(wanted, keep=False)
    return Resume(region.end, keep=True)


class Rounds(NamedTuple):
    """The number of running rounds."""

    tail: int
    catch_up: int


def next_rounds(waiting: Iterable[tuple[bool, T]], under_way: Rounds) -> tuple[list[T], list[T]]:
    """Divide those that wait, in their order, into one round that follows the tail and one that
    catches up; those that do not fit keep waiting."""
    tail: list[T] = []
    catch_up: list[T] = []
    for following, one in waiting:
        part = tail if following else catch_up
        if len(part) < ROUND_PARTITIONS_MAX:
            part.append(one)
    return (
        tail if under_way.tail < TAIL_ROUNDS_MAX else [],
        catch_up if under_way.catch_up < CATCH_UP_ROUNDS_MAX else [],
    )
