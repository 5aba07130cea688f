"""Reads a log: finds batches by offset and records by time.

Everything here may run on an executor's thread while the event loop appends: it uses the list of
segments as it was at the start, and a segment shows no byte before it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import LOG_INLINE_DECODE_BYTES_MAX
from skylog.log.aborted import AbortedTransaction
from skylog.log.files import Replaced, WouldBlock, storage_error
from skylog.log.segment import EMPTY, Segment, slot_of
from skylog.wire.batch import HEADER_BYTES, batch_size
from skylog.wire.records import find_record

if TYPE_CHECKING:
    from skylog.log.log import Log

# (timestamp, offset, leader epoch) of a record
Found = tuple[int, int, int]


class MovedToRemote(KafkaError):  # noqa: N818 — where the records are
    """The offset is part of the log, but not on this disk any more."""

    def __init__(self, offset: int, local_log_start_offset: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
            f"offset {offset} is before {local_log_start_offset}, where the local log begins",
        )
        self.offset = offset


class ReadInfo(NamedTuple):
    """Complete batches, the first of which contains the requested offset.

    ``aborted`` has the aborted transactions that may have records among them, if requested.
    """

    buffer: memoryview
    aborted: Sequence[AbortedTransaction] = ()


_NOTHING = ReadInfo(EMPTY)


def _is_hollow(batches: memoryview) -> bool:
    """Whether all batches are without records, as compaction may leave a segment.

    Some clients take a response without records for one that is too small: more must follow.
    """
    at = 0
    while at < len(batches) and batch_size(batches, at) == HEADER_BYTES:
        at += HEADER_BYTES
    return 0 < at == len(batches)


def _joined(parts: list[memoryview]) -> memoryview:
    return parts[0] if len(parts) == 1 else memoryview(bytearray().join(parts))


class _ReadEnd(NamedTuple):
    """Where a read ended: a position in a segment, and the offset at which the segment ends."""

    segment: Segment
    position: int
    bound: int


class LogReader:
    """Reads one log."""

    __slots__ = ("_log",)

    def __init__(self, log: Log) -> None:
        self._log = log

    # -- by offset -----------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool, block: bool
    ) -> ReadInfo:
        """Whole batches, starting with the one that contains ``offset``, all below
        ``limit_offset``.

        With ``min_one`` the first batch is returned even if it is larger than ``max_bytes``. Raises
        OFFSET_OUT_OF_RANGE, or MovedToRemote for what is in the object store only; WouldBlock if
        not ``block`` and the bytes are not in memory.
        """
        while True:
            try:
                parts, _ = self._read(offset, max_bytes, limit_offset, min_one=min_one, block=block)
                return ReadInfo(_joined(parts)) if parts else _NOTHING
            except Replaced:
                continue  # read from the cleaned copy

    def read_committed(
        self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool, block: bool
    ) -> ReadInfo:
        """The same for read-committed consumers, with the aborted transactions."""
        while True:
            try:
                parts, last = self._read(
                    offset, max_bytes, limit_offset, min_one=min_one, block=block
                )
                if last is None:
                    return _NOTHING
                aborted = self._aborted(offset, last, block)
                return ReadInfo(_joined(parts), aborted)
            except Replaced:
                continue

    def _aborted(self, offset: int, last: _ReadEnd, block: bool) -> list[AbortedTransaction]:
        try:
            following = last.segment.offset_index(block=block).ceiling_position(last.position)
            end = last.bound if following is None else following[0]
            return self.aborted_transactions(offset, end, block=block)
        except OSError as error:
            self._read_failed(offset, error)

    def aborted_transactions(
        self, start: int, end: int, *, block: bool
    ) -> list[AbortedTransaction]:
        """Those that overlap the offsets from ``start`` to ``end``, in marker order."""
        segments, _, _ = self._log.shown
        found: list[AbortedTransaction] = []
        for slot in range(slot_of(segments, start), len(segments)):
            segment = segments[slot]
            is_last = segment.aborted.collect(start, end, found, block=block)
            if segment.is_replaced:
                raise Replaced
            if is_last:
                break
        return found

    def _read(
        self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool, block: bool
    ) -> tuple[list[memoryview], _ReadEnd | None]:
        """The parts that were read, and where the last one ends."""
        log = self._log
        log.check_usable()
        segments, size, end = log.shown
        if offset < log.local_log_start_offset or offset > end:
            self._out_of_range(offset)
        limit = min(limit_offset, end)
        parts: list[memoryview] = []
        last: _ReadEnd | None = None
        if offset >= limit or (max_bytes <= 0 and not min_one):
            return parts, last
        try:
            for slot in range(slot_of(segments, offset), len(segments)):
                segment = segments[slot]
                position = segment.position_of(offset, block=block)
                if position is None:
                    continue  # compaction removed the rest of this segment
                if slot + 1 < len(segments):
                    bound, stop = segments[slot + 1].base_offset, segment.size
                else:
                    bound, stop = end, size
                following = bound
                if limit < bound:
                    found = segment.position_of(limit, block=block)
                    bound, stop = limit, stop if found is None else found
                if stop > position:
                    part = segment.read(
                        position, stop, max_bytes, bound, min_one=min_one, block=block
                    )
                    parts.append(part)
                    # As in Kafka, a batch that does not fit counts up to the limit.
                    reached = min(position + max(len(part), max_bytes), stop)
                    last = _ReadEnd(segment, reached, following)
                    max_bytes -= len(part)
                if bound == limit or stop <= position or not _is_hollow(parts[-1]):
                    break
        except OSError as error:
            self._read_failed(offset, error)
        return parts, last

    def _out_of_range(self, offset: int) -> NoReturn:
        log = self._log
        if log.log_start_offset <= offset < log.local_log_start_offset:
            raise MovedToRemote(offset, log.local_log_start_offset)
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is not in {log.log_start_offset}..{log.log_end_offset}",
        )

    def _read_failed(self, offset: int, error: OSError) -> NoReturn:
        if isinstance(error, FileNotFoundError) and offset < self._log.local_log_start_offset:
            self._out_of_range(offset)  # retention has deleted it meanwhile
        raise storage_error(f"read of {self._log.directory} failed", error) from error

    # -- by time -------------------------------------------------------------------------------

    def offset_for_timestamp(self, timestamp: int, *, block: bool) -> Found | None:
        """The first record at or after ``timestamp`` on this disk."""
        while True:
            try:
                return self._offset_for_timestamp(timestamp, block)
            except Replaced:
                continue

    def _offset_for_timestamp(self, timestamp: int, block: bool) -> Found | None:
        self._log.check_usable()
        start = self._log.local_log_start_offset
        try:
            for segment in self._log.segments:
                if segment.size and segment.largest_timestamp(block=block) >= timestamp:
                    found = self._search(segment, timestamp, start, block)
                    if found is not None:
                        return found
        except OSError as error:
            self._read_failed(start, error)
        return None

    def max_timestamp_offset(self, *, block: bool) -> Found | None:
        """The first record with the largest timestamp on this disk."""
        while True:
            try:
                return self._max_timestamp_offset(block)
            except Replaced:
                continue

    def _max_timestamp_offset(self, block: bool) -> Found | None:
        self._log.check_usable()
        best: tuple[int, int] | None = None
        holder: Segment | None = None
        try:
            for segment in self._log.segments:
                found = segment.max_timestamp(block=block)
                if segment.size and found[0] >= 0 and (best is None or found[0] > best[0]):
                    best, holder = found, segment
            if best is None or holder is None:
                return None
            return self._search(holder, best[0], 0, block)
        except OSError as error:
            self._read_failed(self._log.local_log_start_offset, error)

    @staticmethod
    def _search(segment: Segment, timestamp: int, start: int, block: bool) -> Found | None:
        size = segment.size
        # An entry means: up to this offset no timestamp is larger.
        before = segment.time_index(block=block).floor(timestamp)[1]
        entry = segment.offset_index(block=block).floor(max(before, start))
        for header, position in segment.headers(entry[1] if entry else 0, size, block=block):
            if header.max_timestamp < timestamp or header.last_offset < start:
                continue
            if not block and header.size > LOG_INLINE_DECODE_BYTES_MAX:
                raise WouldBlock  # decompressing it would block the event loop
            batch = segment.batch_at(position, header.size, block=block)
            found = find_record(batch, timestamp, start)
            if found is not None:
                return found[1], found[0], batch.leader_epoch
        return None
