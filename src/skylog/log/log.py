"""The local log of one partition: its segments and offsets, and the parts that work on them.

==============  =======================================================  ========================
part            what it does                                             called on
==============  =======================================================  ========================
``reader``      finds batches by offset and records by time              any thread
``appender``    checks producers, assigns offsets, writes, rolls         the event loop
``durability``  syncs, and knows what is durable                         any one thread
``companions``  leader epochs, the topic's id, and their files           the event loop
``snapshots``   the producers' state as of the start of a segment        the event loop
``trimming``    moves the start: retention and DeleteRecords             the event loop
==============  =======================================================  ========================

``log_start_offset`` is the start of the whole log, ``local_log_start_offset`` that of the part on
this disk: what lies between them is in the object store. Without tiered storage both are the same.
Always log start ≤ local start ≤ high watermark.

The log is their shared state. Its attributes may be read everywhere and are changed on the event
loop, by these parts and, for the high watermark, by its partition. Operations that concern all
parts are here: opening, closing, truncation, the swap of a cleaned copy, and going offline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.log.appender import Appender
from skylog.log.checkpoints import TopicPartition
from skylog.log.closed import ClosedSegment, closed_segments
from skylog.log.companions import Companions
from skylog.log.config import LogConfig
from skylog.log.durability import Durability
from skylog.log.files import Files, storage_error
from skylog.log.host import LogHost
from skylog.log.producers import Producers
from skylog.log.reader import LogReader
from skylog.log.recovery import NOTHING_KNOWN, Checkpointed, Loaded, load
from skylog.log.segment import Segment, slot_of
from skylog.log.snapshots import ProducerSnapshots
from skylog.log.swap import CleanedSegment
from skylog.log.trimming import Trimming

_logger = get_logger("log")


class Log:
    """A partition's batches in segments."""

    __slots__ = (
        "_failure",
        "_has_start",
        "appender",
        "clean_offset",
        "companions",
        "config",
        "directory",
        "durability",
        "files",
        "high_watermark",
        "highest_remote_offset",
        "host",
        "local_log_start_offset",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producers",
        "reader",
        "remote_end",
        "segments",
        "shown",
        "snapshots",
        "topic",
        "trimming",
    )

    # Replaced, never changed in place: a thread may still use the list it has.
    segments: list[Segment]
    # Segments, size of the last and end offset, as of one moment: the view of other threads.
    shown: tuple[list[Segment], int, int]
    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int
    producers: Producers

    def __init__(
        self, topic: str, partition: int, directory: str, host: LogHost, config: LogConfig
    ) -> None:
        """Use ``open``."""
        self.topic = topic
        self.partition = partition
        self.directory = directory
        self.host = host
        self.files: Files = host.files
        self.config = config
        self.high_watermark = 0
        # The last offset in the object store, −1 if none; there may be gaps below it.
        self.highest_remote_offset = -1
        # From the local start up to here, the object store has everything.
        self.remote_end = 0
        # Below it compaction has left one record for each key.
        self.clean_offset = 0
        self._failure: KafkaError | None = None
        # Whether the log start was written down, or has been told since.
        self._has_start = False
        self.reader = LogReader(self)
        self.appender = Appender(self)
        self.durability = Durability(self)
        self.companions = Companions(self)
        self.snapshots = ProducerSnapshots(self)
        self.trimming = Trimming(self)

    @classmethod
    def open(
        cls,
        key: TopicPartition,
        directory: str,
        host: LogHost,
        config: LogConfig,
        now_ms: int,
        known: Checkpointed = NOTHING_KNOWN,
    ) -> Self:
        """Open a partition's directory, which is created if it does not exist."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        loaded = load(host.files, directory, config, now_ms, known)
        log = cls(*key, directory, host, config)
        log._has_start = known.has_start
        log._take(loaded)
        log.high_watermark = loaded.local_log_start_offset
        log.durability.begin(loaded.recovery_point, now_ms)
        log.companions.begin(loaded.topic_id, changed=loaded.epochs_changed)
        return log

    def _take(self, loaded: Loaded) -> None:
        """Continue with the state found in the files."""
        self.segments = loaded.segments
        self.log_start_offset = loaded.log_start_offset
        self.local_log_start_offset = loaded.local_log_start_offset
        self.log_end_offset = loaded.end_offset
        self.producers = loaded.producers
        self.companions.epochs = loaded.epochs
        self.snapshots.taken_offset = loaded.snapshot_offset
        self.show()

    def show(self) -> None:
        """Publish the current state of the log to other threads."""
        segments = self.segments
        self.shown = segments, segments[-1].size, self.log_end_offset

    def close(self) -> None:
        """Close so that the directory can be opened without recovery. Blocks."""
        self.check_usable()
        self.companions.write()
        self.snapshots.take()
        self.durability.sync()
        try:
            self.segments[-1].finish_indexes()
            self.durability.sync_indexes(self.segments[-1])
        except OSError as error:
            raise storage_error(f"close of {self.directory} failed", error) from error
        self.files.forget_under(self.directory)

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def size(self) -> int:
        """Bytes on this disk."""
        return sum(segment.size for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open."""
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    # -- tiered storage ------------------------------------------------------------------------

    def configure(self, config: LogConfig) -> None:
        """The topic's settings changed, or are known at last."""
        self.config = config
        self.segments[-1].configure(config)
        if config.remote:
            self.host.start_moved(self)  # from now on it is always written down
        else:
            self.trimming.forget_remote()

    @property
    def knows_start(self) -> bool:
        """False if the log may begin before its first local segment, and the entry that would say
        so is lost: then the remote log, or the leader, has to tell."""
        return self._has_start or not self.log_start_offset

    def start_known(self) -> None:
        """The log start is what it is now."""
        self._has_start = True

    def remote_moved(self, highest: int, remote_end: int) -> None:
        """What the object store has: the highest offset, and the end of the gapless run from the
        local start on. Local retention goes by the latter."""
        self.highest_remote_offset = highest
        self.remote_end = min(remote_end, self.log_end_offset)

    @property
    def pending_upload_offset(self) -> int:
        """The first offset that waits to be copied, or would if there were records; −1 if nothing
        is copied, or what was has not been read yet."""
        highest = self.highest_remote_offset
        is_unread = highest < 0 and self.local_log_start_offset > self.log_start_offset
        if is_unread or not self.config.remote:
            return -1
        return max(highest + 1, self.log_start_offset)

    def closed_segments(self, from_offset: int, stable_offset: int) -> list[ClosedSegment]:
        """Those with offsets from ``from_offset`` on that may be copied while the last stable
        offset is ``stable_offset``, oldest first."""
        return closed_segments(self, from_offset, stable_offset)

    # -- leader epochs -------------------------------------------------------------------------

    @property
    def latest_epoch(self) -> int:
        return self.companions.epochs.latest

    def epoch_of(self, offset: int) -> int:
        """The leader epoch of ``offset``, −1 if it is unknown."""
        return self.companions.epochs.of(offset)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to ``epoch``, and the offset after its last record."""
        return self.companions.epochs.end_of(epoch, self.log_end_offset)

    # -- availability --------------------------------------------------------------------------

    @property
    def is_offline(self) -> bool:
        return self._failure is not None

    @property
    def is_deleted(self) -> bool:
        failure = self._failure
        return failure is not None and failure.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def check_usable(self) -> None:
        if self._failure is not None:
            raise KafkaError(self._failure.code, self._failure.message)

    def mark_deleted(self) -> None:
        """The partition was deleted: the next call of any user of the log fails."""
        self._failure = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def fail(self, what: str, error: OSError, *, ambiguous: bool = False) -> KafkaError:
        """Take the log offline; returns the error to raise.

        If the log was deleted while a thread worked on it, its directory is missing, but no disk
        has failed.
        """
        if self._failure is not None and self.is_deleted:
            return self._failure
        self._failure = storage_error(f"{self.directory} is offline", error)
        _logger.error("log is offline", directory=self.directory, error=str(error))
        self.host.failed(self)
        return storage_error(what, error, ambiguous=ambiguous)

    # -- compaction ----------------------------------------------------------------------------

    def replace_segments(self, old: Sequence[Segment], copy: CleanedSegment) -> bool:
        """Replace ``old`` by a finished copy; False if they are no longer part of the log."""
        self.check_usable()
        segments = self.segments
        first = next((n for n, one in enumerate(segments) if one is old[0]), len(segments))
        after = first + len(old)
        if after >= len(segments) or any(
            a is not b for a, b in zip(segments[first:after], old, strict=True)
        ):
            return False
        try:
            copy.commit()
            paths: list[str] = []
            for segment in old:
                segment.is_replaced = True
                paths += segment.rename_deleted()
                if segment is not old[0]:
                    paths += self.snapshots.rename_deleted(segment)
            copy.take_place()
            new = Segment.open(
                self.files, self.directory, copy.base_offset, self.config, copy.created_ms
            )
        except OSError as error:
            raise self.fail(f"compaction of {self.directory} failed", error) from error
        self.segments = [*segments[:first], new, *segments[after:]]
        self.durability.directory_unsynced = True
        self.show()
        self.host.discard(self, paths)
        return True

    # -- truncation ----------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop everything at or above ``offset``: the leader has other records there. Blocks."""
        self.check_usable()
        if offset >= self.log_end_offset:
            # This replica may have become leader at this offset without writing anything.
            self.companions.truncate_end(self.log_end_offset)
            return
        if offset <= self.segments[0].base_offset:
            # Of what is before it only the object store knows epochs and producers.
            self.truncate_fully_and_start_at(offset, self.log_start_offset)
            return
        try:
            last = slot_of(self.segments, offset)
            self.trimming.discard(self.segments[last + 1 :])
            self.segments[last].truncate_to(offset)
            self.segments[last].finish_indexes()
            self._reload(offset, min(self.log_start_offset, offset))
        except OSError as error:
            raise self.fail(f"truncation of {self.directory} failed", error) from error

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        """Drop everything; the log continues at ``offset``, after a snapshot. Blocks.

        With ``log_start`` the records from there on are in the object store.
        """
        self.check_usable()
        start = offset if log_start is None else min(log_start, offset)
        try:
            self.log_start_offset = start
            self.start_known()
            self.host.pin_start(self)
            self.trimming.discard(self.segments)
            # Before the log begins anew: old epochs must not pass for what came before it.
            self.companions.restore(())
            self._begin_at(offset)
            self._reload(offset, start)
        except OSError as error:
            raise self.fail(f"truncation of {self.directory} failed", error) from error

    def _begin_at(self, offset: int) -> None:
        now_ms = self.durability.flushed_ms
        Segment.create(self.files, self.directory, offset, self.config, now_ms)

    def _reload(self, end: int, start: int) -> None:
        """Read the state again from the files, which were truncated to ``end``."""
        self.companions.truncate_end(end)
        self.companions.write()
        known = Checkpointed(
            clean=True, log_start_offset=start, has_start=True, high_watermark=self.high_watermark
        )
        now_ms = self.durability.flushed_ms
        self._take(load(self.files, self.directory, self.config, now_ms, known))
        end = self.log_end_offset
        self.high_watermark = min(max(self.high_watermark, self.local_log_start_offset), end)
        self.clean_offset = min(self.clean_offset, end)
        # Other records may follow than those in the object store.
        self.remote_end = min(self.remote_end, end)
        self.highest_remote_offset = min(self.highest_remote_offset, end - 1)
        self.durability.truncated_to(end)
        self.host.start_moved(self)
