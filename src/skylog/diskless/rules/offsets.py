"""Pure: rules for a partition's offsets: for finds, for ListOffsets, and for deletion.

A plane passes its stored state (``LogState``, coordinates) and stores the result in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.plane import (
    DELETE_TO_HIGH_WATERMARK,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    FindRequest,
    FindResult,
    ListOffsetsResult,
    LogInfo,
)
from skylog.kernel.errors import ErrorCode

# A local alias: every find needs it, and access to an enum member is slow.
_NONE: Final = ErrorCode.NONE


class LogState(NamedTuple):
    """A partition: what users see of it, and the first offset in WAL objects."""

    log_start_offset: int = 0
    high_watermark: int = 0
    byte_size: int = 0
    wal_start_offset: int = 0

    def grown(self, high_watermark: int, byte_size: int) -> LogState:
        """After a commit; called for every batch, so without ``_replace``, which is far slower."""
        start, _, _, wal_start = self
        return tuple.__new__(LogState, (start, high_watermark, byte_size, wal_start))


def log_info(log: LogState | None) -> LogInfo:
    if log is None:
        return LogInfo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return LogInfo(
        ErrorCode.NONE,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        byte_size=log.byte_size,
        wal_start_offset=wal_start(log),
    )


# --- Find -----------------------------------------------------------------------------------------


def find_error(offset: int, log: LogState) -> ErrorCode:
    """Whether a find may start at ``offset``."""
    if offset < log.log_start_offset or offset > log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if offset < log.wal_start_offset:
        return ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    return _NONE


class FindBudget:
    """The bytes of one find, spent in request order; ``partition`` starts the next one."""

    __slots__ = ("_batches_max", "_left", "_partition_left", "_used")

    def __init__(
        self, fetch_max_bytes: int, max_batches_per_partition: int, *, min_one: bool = True
    ) -> None:
        self._left = fetch_max_bytes
        self._batches_max = max_batches_per_partition
        self._used = not min_one
        self._partition_left = 0

    def partition(self, max_bytes: int) -> bool:
        """Whether the partition may get anything."""
        self._partition_left = max_bytes
        return not self._used or (self._left > 0 and max_bytes > 0)

    def grant(self, batches: Iterable[BatchCoordinate]) -> list[BatchCoordinate]:
        """The batches granted to the partition: all that fit, and always the first of the find."""
        granted: list[BatchCoordinate] = []
        # Runs for every batch that is read.
        left, batches_left = min(self._left, self._partition_left), self._batches_max or math.inf
        for batch in batches:
            if self._used and (batch.extent.byte_size > left or batches_left <= 0):
                break
            self._used = True
            granted.append(batch)
            left -= batch.extent.byte_size
            batches_left -= 1
        self._left -= min(self._left, self._partition_left) - left
        return granted

    def cut(self, result: FindResult, request: FindRequest) -> FindResult:
        """The part of a result, found with a budget of its own, that this budget allows."""
        if result.error or not result.batches:
            return result
        fits = self.partition(request.max_bytes)
        return replace(result, batches=self.grant(result.batches) if fits else ())


# --- ListOffsets ----------------------------------------------------------------------------------


def named_offset(timestamp: int, log: LogState) -> ListOffsetsResult | None:
    """The result for a timestamp that names an offset; None if batches must be examined."""
    if timestamp == LATEST:
        return ListOffsetsResult(ErrorCode.NONE, offset=log.high_watermark)
    if timestamp == EARLIEST:
        return ListOffsetsResult(ErrorCode.NONE, offset=log.log_start_offset)
    if timestamp == EARLIEST_LOCAL:
        return ListOffsetsResult(ErrorCode.NONE, offset=wal_start(log))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ListOffsetsResult(ErrorCode.NONE)
    if timestamp < EARLIEST_PENDING_UPLOAD:
        return ListOffsetsResult(ErrorCode.UNSUPPORTED_VERSION)
    return None


def wal_start(log: LogState) -> int:
    """The first offset in WAL objects that users may see."""
    return max(log.log_start_offset, log.wal_start_offset)


def chosen_offset(
    batch: BatchCoordinate | None, timestamp: int, log: LogState
) -> ListOffsetsResult:
    """The result for the chosen batch."""
    if batch is None:
        return ListOffsetsResult(ErrorCode.NONE)
    stamp = batch.stamp
    first = max(stamp.base_offset, wal_start(log))
    offset = stamp.last_offset if timestamp == MAX_TIMESTAMP else first
    return ListOffsetsResult(ErrorCode.NONE, stamp.timestamp, offset, batch)


# --- Deletion -------------------------------------------------------------------------------------


def delete_target(offset: int, log: LogState) -> int | None:
    """The log start that DeleteRecords requests; None if it is out of range."""
    if offset == DELETE_TO_HIGH_WATERMARK:
        return log.high_watermark
    if offset < 0 or offset > log.high_watermark:
        return None
    return max(offset, log.log_start_offset)


class RetentionLimits(NamedTuple):
    """``bytes`` and ``ms`` are off when negative."""

    bytes: int
    ms: int

    @property
    def off(self) -> bool:
        return self.bytes < 0 and self.ms < 0


def retention_start(
    oldest: Sequence[BatchCoordinate],
    log: LogState,
    limits: RetentionLimits,
    now_ms: int,
    max_batches: int,
) -> int:
    """The new log start; ``oldest`` are the first ``max_batches`` + 1 batches, or all.

    A log shrinks from its start only, so that of a pruned prefix comes first, and the plane does
    not know how old and large it is: whoever manages tiered storage decides.
    """
    if limits.off or log.log_start_offset < log.wal_start_offset:
        return log.log_start_offset
    kept_bytes = log.byte_size
    for index, batch in enumerate(oldest):
        fits = limits.bytes < 0 or kept_bytes <= limits.bytes
        young = limits.ms < 0 or batch.stamp.timestamp >= now_ms - limits.ms
        if (fits and young) or index == max_batches:
            return max(log.log_start_offset, batch.stamp.base_offset)
        kept_bytes -= batch.extent.byte_size
    return log.high_watermark
