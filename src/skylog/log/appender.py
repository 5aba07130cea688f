"""Appends to a log: as the leader, which assigns offsets, or as a follower, which keeps them.

A failed write (a full disk) is truncated and leaves the log unchanged; if that is not possible, or
a sync fails, the log goes offline, because the contents of the disk are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.log.files import storage_error
from skylog.log.markers import marker_batch, marker_of
from skylog.log.producers import TransactionEnd
from skylog.log.rolling import must_roll
from skylog.log.segment import Segment
from skylog.log.verification import CLIENT, Guard, Origin
from skylog.wire.batch import NO_TIMESTAMP, Batch, patch_offset
from skylog.wire.buffers import Buffer

if TYPE_CHECKING:
    from skylog.log.log import Log

_logger = get_logger("log")


class AppendInfo(NamedTuple):
    """Where batches were written; for a duplicate, where the original was."""

    first_offset: int
    last_offset: int
    log_start_offset: int
    duplicate: bool
    max_timestamp: int


class Appender:
    """Writes to the last segment of one log, on the event loop."""

    __slots__ = ("_log",)

    def __init__(self, log: Log) -> None:
        self._log = log

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        """The guard for the first batch of a transaction; None if the transaction is already
        open."""
        self._log.check_usable()
        return self._log.producers.start_verification(
            producer_id, sequence, epoch, epoch_grows=epoch_grows, now_ms=now_ms
        )

    def append(
        self, batches: Sequence[Batch], leader_epoch: int, now_ms: int, origin: Origin = CLIENT
    ) -> AppendInfo:
        """Append as the leader: offsets are assigned, producers are checked.

        After a KafkaError the log is unchanged, unless the error is ambiguous.
        """
        log = self._log
        log.check_usable()
        known = log.producers.check(batches, origin)
        if known is not None:
            return AppendInfo(
                known.first_offset,
                known.last_offset,
                log.log_start_offset,
                duplicate=True,
                max_timestamp=known.timestamp,
            )
        return self._place(batches, leader_epoch, now_ms)

    def append_marker(self, end: TransactionEnd, leader_epoch: int, now_ms: int) -> AppendInfo:
        """End a transaction as its coordinator decided; fails like ``append``."""
        self._log.check_usable()
        self._log.producers.check_end(end)
        return self._place((marker_batch(end, now_ms),), leader_epoch, now_ms)

    def _place(self, batches: Sequence[Batch], leader_epoch: int, now_ms: int) -> AppendInfo:
        log = self._log
        first = offset = log.log_end_offset
        for batch in batches:
            buffer = batch.buffer
            if isinstance(buffer, bytes) or (isinstance(buffer, memoryview) and buffer.readonly):
                buffer = batch.buffer = bytearray(buffer)
            patch_offset(buffer, offset, leader_epoch)
            batch.base_offset = offset
            batch.leader_epoch = leader_epoch
            offset += batch.last_offset_delta + 1
        timestamp = self._write(batches, now_ms)
        return AppendInfo(first, log.log_end_offset - 1, log.log_start_offset, False, timestamp)

    def append_as_follower(
        self, batches: Sequence[Batch], now_ms: int = 0, buffer: Buffer | None = None
    ) -> AppendInfo:
        """Append batches with the offsets that the leader assigned.

        ``buffer`` has exactly their bytes, if they are adjacent: then it is written unchanged.
        """
        log = self._log
        log.check_usable()
        offset = log.log_end_offset
        for batch in batches:
            if batch.base_offset < offset or batch.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD, f"{batch} does not follow offset {offset}"
                )
            offset = batch.next_offset
        timestamp = self._write(batches, now_ms, buffer)
        return AppendInfo(
            batches[0].base_offset,
            log.log_end_offset - 1,
            log.log_start_offset,
            duplicate=False,
            max_timestamp=timestamp,
        )

    def _write(self, batches: Sequence[Batch], now_ms: int, buffer: Buffer | None = None) -> int:
        """Write placed batches to the file and update the state; returns their largest
        timestamp."""
        timestamp, total = NO_TIMESTAMP, 0
        for batch in batches:
            total += batch.size
            timestamp = max(timestamp, batch.max_timestamp)
        buffers = [batch.buffer for batch in batches] if buffer is None else [buffer]
        log = self._log
        config = log.config
        if total > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{total} bytes exceed the segment size of {config.segment_bytes}",
            )
        last = batches[-1].last_offset
        segment = log.segments[-1]
        try:
            if must_roll(segment, config, total, last, timestamp, now_ms):
                segment = self.roll(batches[0].base_offset, now_ms)
            segment.append(batches, buffers)
        except OSError as error:
            self._write_failed(segment, error)
        companions = log.companions
        for batch in batches:
            if batch.leader_epoch > companions.epochs.latest:
                companions.note_epoch(batch.leader_epoch, batch.base_offset)
            if batch.producer_id >= 0:
                self._note_producer(batch, segment)
        end = log.log_end_offset = last + 1
        log.show()
        if companions.is_behind:
            companions.write()
        durability = log.durability
        if end - durability.recovery_point >= config.flush_messages:
            durability.sync()
        return timestamp

    def _note_producer(self, batch: Batch, segment: Segment) -> None:
        log = self._log
        done = log.producers.apply(batch, marker_of(batch) if batch.is_control else None)
        if done is None:
            return
        log.producers.settle(log.high_watermark)  # perhaps no reader ever does this
        if not done.aborted:
            return
        if segment.note_aborted(done):
            log.durability.directory_unsynced = True
        try:
            segment.aborted.write()
        except OSError as error:  # it stays in memory until the next write or roll
            _logger.warning("index is behind", directory=log.directory, error=str(error))

    def _write_failed(self, segment: Segment, error: OSError) -> NoReturn:
        """Truncate what a failed write may have left, so that the next one starts clean."""
        log = self._log
        _logger.error("append failed", directory=log.directory, error=str(error))
        what = f"append to {log.topic}-{log.partition} failed"
        try:
            segment.cut_torn()
        except OSError as worse:
            raise log.fail(what, worse, ambiguous=True) from error
        raise storage_error(what, error) from error

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment. If it raises OSError, the old one is still in use."""
        log = self._log
        active, durability = log.segments[-1], log.durability
        if active.size == 0 and active.base_offset == base_offset:
            return active
        active.finish_indexes()
        if durability.recovery_point >= base_offset:
            # A checkpoint may already cover the batches; then these indexes would not be rebuilt.
            durability.sync_indexes(active)
        segment = Segment.create(log.files, log.directory, base_offset, log.config, now_ms)
        durability.directory_unsynced = True
        log.snapshots.take()
        log.segments = [*log.segments, segment]
        log.show()
        log.host.rolled(log)
        return segment
