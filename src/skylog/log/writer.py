"""The writing half of a local log: appends, rolls, and makes durable.

All changes happen on the event loop; only reads and ``sync`` may run on an executor's thread.

A write that fails (a full disk) is cut off again and leaves the log as it was; when that is not
possible, or a sync fails, the log goes offline: nobody knows any more what the disk holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    encode_epochs,
    encode_partition_metadata,
    encode_snapshot,
)
from skylog.log.files import storage_error
from skylog.log.host import LogHost
from skylog.log.markers import marker_batch, marker_of
from skylog.log.names import SNAPSHOT_SUFFIX, file_name
from skylog.log.producers import ProducerEntry, TransactionEnd
from skylog.log.reader import LogReader
from skylog.log.recovery import Loaded, Opening
from skylog.log.rolling import must_roll
from skylog.log.segment import Segment
from skylog.log.verification import CLIENT, Guard, Origin
from skylog.wire.batch import NO_TIMESTAMP, Batch, patch_offset
from skylog.wire.buffers import Buffer

_logger = get_logger("log")


class AppendInfo(NamedTuple):
    """Where batches went; for a duplicate, where they went the first time."""

    first_offset: int
    last_offset: int
    log_start_offset: int
    duplicate: bool
    max_timestamp: int


class LogWriter(LogReader):
    """Appends to the last segment and keeps what belongs to it."""

    __slots__ = (
        "_directory_unsynced",
        "_epochs_unsynced",
        "_epochs_unwritten",
        "_files",
        "_host",
        "_producers",
        "_snapshot_offset",
        "_snapshots_unsynced",
        "_topic_id_unwritten",
        "clean_offset",
        "config",
        "flushed_ms",
        "high_watermark",
        "partition",
        "recovery_point",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: str, partition: int, opening: Opening, loaded: Loaded, host: LogHost
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id: Uuid = loaded.topic_id or ZERO_UUID
        self.config = opening.config
        self.directory = opening.directory
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = loaded.log_start_offset
        self.recovery_point = loaded.recovery_point
        # Below it compaction has left one record for each key.
        self.clean_offset = 0
        self.flushed_ms = opening.now_ms
        self._files = opening.files
        self._host = host
        self._segments = loaded.segments
        self._end = loaded.end_offset
        self._epochs = loaded.epochs
        self._epochs_unwritten = loaded.epochs_changed
        self._epochs_unsynced = True
        self._topic_id_unwritten = False
        self._producers = loaded.producers
        self._snapshot_offset = loaded.snapshot_offset
        self._snapshots_unsynced: tuple[str, ...] = ()
        self._failure: KafkaError | None = None
        # A new file is safe only when its directory is.
        self._directory_unsynced = True
        self._show()

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, {self.log_start_offset}..{self._end})"

    # -- state ---------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open."""
        unstable = self._producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    @property
    def oldest_transaction(self) -> ProducerEntry | None:
        """The producer whose open transaction began first."""
        return self._producers.oldest_transaction

    def active_producers(self) -> list[ProducerEntry]:
        return list(self._producers)

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Note whose log this is, once."""
        if self.topic_id == topic_id:
            return
        if self.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.directory} belongs to {self.topic_id}, not to {topic_id}",
            )
        self.topic_id = topic_id
        self._topic_id_unwritten = True
        self._host.unwritten(self)

    def assign_epoch(self, epoch: int) -> None:
        """A leader's epoch begins at the end of the log."""
        if self._epochs.assign(epoch, self._end):
            self._epochs_unwritten = True
            self._host.unwritten(self)

    def write_companions(self) -> None:
        """Write the small files that are behind; a failure waits for the next time.

        The epochs are in the batches too, and the controller knows the topic's id.
        """
        try:
            if self._topic_id_unwritten:
                self._put(PARTITION_METADATA, encode_partition_metadata(self.topic_id))
                self._topic_id_unwritten = False
            if self._epochs_unwritten:
                self._epochs_unsynced = True
                self._put(LEADER_EPOCH_CHECKPOINT, encode_epochs(self._epochs))
                self._epochs_unwritten = False
        except OSError as error:
            _logger.warning("small files not written", directory=self.directory, error=str(error))

    def _put(self, name: str, content: str) -> None:
        self._files.replace(f"{self.directory}/{name}", content.encode(), sync=False)

    # -- appending -----------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        """What the first batch of a transaction must bring; None when it is open already."""
        self._check_usable()
        return self._producers.start_verification(
            producer_id, sequence, epoch, epoch_grows=epoch_grows, now_ms=now_ms
        )

    def append(
        self, batches: Sequence[Batch], leader_epoch: int, now_ms: int, origin: Origin = CLIENT
    ) -> AppendInfo:
        """Append as the leader: offsets are assigned, producers are checked.

        Raises KafkaError and leaves the log as it was, unless the error is ambiguous.
        """
        self._check_usable()
        known = self._producers.check(batches, origin)
        if known is not None:
            return AppendInfo(
                known.first_offset,
                known.last_offset,
                self.log_start_offset,
                duplicate=True,
                max_timestamp=known.timestamp,
            )
        return self._place(batches, leader_epoch, now_ms)

    def append_marker(self, end: TransactionEnd, leader_epoch: int, now_ms: int) -> AppendInfo:
        """End a transaction, as its coordinator says; fails like ``append``."""
        self._check_usable()
        self._producers.check_end(end)
        return self._place((marker_batch(end, now_ms),), leader_epoch, now_ms)

    def _place(self, batches: Sequence[Batch], leader_epoch: int, now_ms: int) -> AppendInfo:
        first = offset = self._end
        for batch in batches:
            buffer = batch.buffer
            if isinstance(buffer, bytes) or (isinstance(buffer, memoryview) and buffer.readonly):
                buffer = batch.buffer = bytearray(buffer)
            patch_offset(buffer, offset, leader_epoch)
            batch.base_offset = offset
            batch.leader_epoch = leader_epoch
            offset += batch.last_offset_delta + 1
        timestamp = self._write(batches, now_ms)
        return AppendInfo(first, self._end - 1, self.log_start_offset, False, timestamp)

    def append_as_follower(
        self, batches: Sequence[Batch], now_ms: int = 0, buffer: Buffer | None = None
    ) -> AppendInfo:
        """Append batches as the leader placed them.

        ``buffer`` holds exactly their bytes, if they lie together: then it is written as it is.
        """
        self._check_usable()
        offset = self._end
        for batch in batches:
            if batch.base_offset < offset or batch.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD, f"{batch} does not follow offset {offset}"
                )
            offset = batch.next_offset
        timestamp = self._write(batches, now_ms, buffer)
        return AppendInfo(
            batches[0].base_offset,
            self._end - 1,
            self.log_start_offset,
            duplicate=False,
            max_timestamp=timestamp,
        )

    def _write(self, batches: Sequence[Batch], now_ms: int, buffer: Buffer | None = None) -> int:
        """Put placed batches into the file and take note of them; returns their last time."""
        timestamp, total = NO_TIMESTAMP, 0
        for batch in batches:
            total += batch.size
            timestamp = max(timestamp, batch.max_timestamp)
        buffers = [batch.buffer for batch in batches] if buffer is None else [buffer]
        config = self.config
        if total > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{total} bytes exceed the segment size of {config.segment_bytes}",
            )
        last = batches[-1].last_offset
        segment = self._segments[-1]
        try:
            if must_roll(segment, config, total, last, timestamp, now_ms):
                segment = self._roll(batches[0].base_offset, now_ms)
            segment.append(batches, buffers)
        except OSError as error:
            self._write_failed(segment, error)
        for batch in batches:
            if batch.leader_epoch > self._epochs.latest:
                self._epochs.assign(batch.leader_epoch, batch.base_offset)
                self._epochs_unwritten = True
            if batch.producer_id >= 0:
                self._note_producer(batch, segment)
        self._end = last + 1
        self._show()
        if self._epochs_unwritten or self._topic_id_unwritten:
            self.write_companions()
        if self._end - self.recovery_point >= config.flush_messages:
            self.sync()
        return timestamp

    def _note_producer(self, batch: Batch, segment: Segment) -> None:
        done = self._producers.apply(batch, marker_of(batch) if batch.is_control else None)
        if done is None:
            return
        self._producers.settle(self.high_watermark)  # nobody may ever ask what is stable
        if not done.aborted:
            return
        if segment.note_aborted(done):
            self._directory_unsynced = True
        try:
            segment.aborted.write()
        except OSError as error:  # it stays in memory; the next write, or the roll, takes it
            _logger.warning("index is behind", directory=self.directory, error=str(error))

    def _write_failed(self, segment: Segment, error: OSError) -> NoReturn:
        """Cut off what a failed write may have left, so that the next one starts clean."""
        _logger.error("append failed", directory=self.directory, error=str(error))
        what = f"append to {self.topic}-{self.partition} failed"
        try:
            segment.cut_torn()
        except OSError as worse:
            raise self._fail(what, worse, ambiguous=True) from error
        raise storage_error(what, error) from error

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment. Raises OSError with the old one still in use."""
        active = self._segments[-1]
        if active.size == 0 and active.base_offset == base_offset:
            return active
        active.finish_indexes()
        if self.recovery_point >= base_offset:
            # A checkpoint may already say so, and then nobody would rebuild these indexes.
            self._sync_indexes(active)
        segment = Segment.create(self._files, self.directory, base_offset, self.config, now_ms)
        self._directory_unsynced = True
        self._take_snapshot()
        self._segments = [*self._segments, segment]
        self._show()
        self._host.rolled(self)
        return segment

    def _take_snapshot(self) -> None:
        """Producers as of the log's end. Without one, a start reads more headers: no harm done."""
        if self._snapshot_offset == self._end:
            return
        path = f"{self.directory}/{file_name(self._end, SNAPSHOT_SUFFIX)}"
        try:
            self._files.replace(path, encode_snapshot(self._producers), sync=False)
        except OSError as error:
            _logger.warning("no producer snapshot", directory=self.directory, error=str(error))
            return
        self._snapshot_offset = self._end
        if self._producers.first_open_offset is not None:
            # Once the segments before are deleted, nothing else knows these transactions.
            self._snapshots_unsynced = (*self._snapshots_unsynced, path)

    # -- durability ----------------------------------------------------------------------------

    def sync(self) -> None:
        """Make everything appended so far durable; blocks, for an executor's thread.

        A failure is final: after it the kernel may report success for bytes it has dropped.
        """
        segments = self._segments
        self._sync(segments, self._end)

    def sync_rolled(self) -> None:
        """Make all but the last segment durable, as after every roll. Blocks like ``sync``."""
        segments = self._segments
        self._sync(segments, segments[-1].base_offset)

    def _sync(self, segments: list[Segment], end: int) -> None:
        """Sync up to ``end``: the log's end, or where its last segment begins."""
        self._check_usable()
        first = self._slot(segments, self.recovery_point)
        try:
            for segment in segments[max(first - 1, 0) : -1]:
                if segment.indexes_unsynced:
                    segment.sync_indexes()
            snapshots, self._snapshots_unsynced = self._snapshots_unsynced, ()
            for path in snapshots:
                self._files.sync(path)
            if end <= self.recovery_point:
                return
            for segment in segments[first:]:
                if segment.base_offset < end:
                    segment.sync_log()
            if not self._sync_companions():
                return
        except OSError as error:
            what = f"sync of {self.directory} failed"
            raise self._fail(what, error, ambiguous=True) from error
        self.recovery_point = max(self.recovery_point, end)

    def _sync_companions(self) -> bool:
        """False when they are not there: batches below the recovery point are not read again."""
        if self._epochs_unwritten:
            return False
        if self._epochs_unsynced:
            self._epochs_unsynced = False
            self._files.sync(f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}")
        if self._directory_unsynced:
            self._directory_unsynced = False
            self._files.sync(f"{self.directory}/{PARTITION_METADATA}")
            self._files.sync_directory(self.directory)
            self._files.sync_directory(str(Path(self.directory).parent))
        return True

    def _sync_indexes(self, segment: Segment) -> None:
        try:
            segment.sync_indexes()
        except OSError as error:
            self._fail(f"sync of {self.directory} failed", error)
            raise

    def _fail(self, what: str, error: OSError, *, ambiguous: bool = False) -> KafkaError:
        """Take the log offline; returns what to raise.

        One that was deleted while a thread worked on it misses its directory: no disk failed.
        """
        if self._failure is not None and self.is_deleted:
            return self._failure
        self._failure = storage_error(f"{self.directory} is offline", error)
        _logger.error("log is offline", directory=self.directory, error=str(error))
        self._host.failed(self)
        return storage_error(what, error, ambiguous=ambiguous)
