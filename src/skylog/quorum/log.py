"""The metadata log on disk: Kafka's segments under ``__cluster_metadata-0``, and its snapshots.

This module does not know the leader. Appending writes to the file without a sync: the log is
durable up to the last ``sync``. Reading, syncing and writing a snapshot may run on other threads;
everything else runs on the event loop's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError, StorageError, invariant
from skylog.kernel.ids import METADATA_TOPIC_ID
from skylog.kernel.limits import METADATA_BATCH_BYTES_MAX
from skylog.kernel.settings.sections import QuorumSettings
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.quorum.control import ControlRecord, QuorumRecords
from skylog.quorum.integrity import check_segments
from skylog.quorum.messages import EpochEnd
from skylog.quorum.retention import KnownSnapshot, Retention
from skylog.quorum.snapshots import (
    SUFFIX,
    Snapshot,
    SnapshotId,
    encode_snapshot,
    finish_pieces,
    parse_name,
    read_header,
    read_snapshot,
    write_piece,
    write_snapshot,
)
from skylog.quorum.voters import VoterSet
from skylog.replicated.log import KeyValue
from skylog.wire.batch import HEADER_BYTES, Batch, batch_size, split_batches
from skylog.wire.buffers import Buffer
from skylog.wire.control_records import parse_control
from skylog.wire.messages.k_raft_version_record import KRaftVersionRecord
from skylog.wire.messages.voters_record import VotersRecord
from skylog.wire.records import decode_records, encode_batch

_READ_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MetadataLogConfig:
    """Kafka's ``metadata.*`` settings of the log."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    retention: Retention = field(default_factory=Retention)
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_after_ms: int = 3_600_000

    @classmethod
    def from_settings(cls, settings: QuorumSettings) -> MetadataLogConfig:
        return cls(
            segment_bytes=settings.log_segment_bytes,
            segment_ms=settings.log_segment_ms,
            retention=Retention(settings.retention_bytes, settings.retention_ms),
            snapshot_after_bytes=settings.snapshot_after_bytes,
            snapshot_after_ms=settings.snapshot_after_ms,
        )

    def log_config(self) -> LogConfig:
        # Segments are deleted once a snapshot covers them, never by retention.
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
        )


class _Host(LogHost):
    """A segment is synced before the next one gets its first batch.

    So only the last segment can have a torn tail, and any error before it is damage. Segments are
    so large that this one sync on the event loop does not matter.
    """

    def rolled(self, log: Log) -> None:
        log.durability.sync()


class MetadataLog:
    """One replica's log."""

    def __init__(self, directory: Path, files: Files, config: MetadataLogConfig, log: Log) -> None:
        """Use ``open``."""
        self._directory = directory
        self._files = files
        self._config = config
        self._log = log
        self._snapshots: list[KnownSnapshot] = []
        # The state of the control records from each offset on, ascending; −1 is the beginning.
        self._quorum: list[tuple[int, QuorumRecords]] = [(-1, QuorumRecords())]
        self.unsnapshotted_bytes = 0

    @classmethod
    def open(
        cls, directory: Path, files: Files, config: MetadataLogConfig, now_ms: int
    ) -> MetadataLog:
        """Recover the log, truncating a torn tail; StorageError if log and snapshots do not
        match."""
        check_segments(directory)
        # Never treated as cleanly closed: everything is read once, and its checksums are verified.
        key, host = (CLUSTER_METADATA, 0), _Host(files)
        try:
            log = Log.open(key, str(directory), host, config.log_config(), now_ms)
            log.companions.assign_topic_id(METADATA_TOPIC_ID)
        except KafkaError as error:
            raise StorageError(f"{directory} is not the metadata log: {error}") from error
        found = cls(directory, files, config, log)
        found._recover_snapshots()
        found._replay_control()
        return found

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in the snapshot before it."""
        epoch = self._log.latest_epoch
        if epoch >= 0:
            return epoch
        return self._snapshots[-1].id.epoch if self._snapshots else 0

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self._snapshots[-1].id if self._snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self._snapshots[0].id if self._snapshots else None

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """The size of a snapshot; None if it is not here."""
        return next((each.size for each in self._snapshots if each.id == snapshot_id), None)

    @property
    def snapshots(self) -> list[SnapshotId]:
        return [snapshot.id for snapshot in self._snapshots]

    @property
    def quorum(self) -> QuorumRecords:
        """The latest voters, committed or not: voters count once they are in the log."""
        return self._quorum[-1][1]

    @property
    def voters_offset(self) -> int:
        """The offset of the latest voters; −1 if there are only those of formatting, if any."""
        return self._quorum[-1][0]

    @property
    def voters_before(self) -> VoterSet | None:
        return self._quorum[-2][1].voters if len(self._quorum) > 1 else None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch up to this one in the log, and its end."""
        latest, first = self._log.latest_epoch, self.earliest_snapshot
        if 0 <= latest <= epoch:
            return EpochEnd(latest, self.end_offset)
        found, end_offset = epoch, self.start_offset
        if latest >= 0:
            found, end_offset = self._log.epoch_end_offset(epoch)
        if first is not None and end_offset <= first.offset == self.start_offset:
            # Epochs before the log are known only from the snapshot.
            return EpochEnd(first.epoch, first.offset)
        return EpochEnd(found, end_offset)

    @property
    def stored(self) -> Log:
        """The log itself, for backups of committed records."""
        return self._log

    def begin_epoch(self, epoch: int) -> None:
        self._log.companions.assign_epoch(epoch)

    def append(self, records: Sequence[KeyValue], epoch: int, now_ms: int) -> int:
        """Append one batch; returns the end of the log."""
        return self._append(encode_batch(records, timestamp=now_ms), epoch, now_ms)

    def append_control(self, records: Sequence[ControlRecord], epoch: int, now_ms: int) -> int:
        batch = encode_batch(records, timestamp=now_ms, control=True)
        base_offset = self.end_offset
        end_offset = self._append(batch, epoch, now_ms)
        for index, (key, value) in enumerate(records):
            self._note_control(base_offset + index, key, value)
        return end_offset

    def _append(self, batch: bytes, epoch: int, now_ms: int) -> int:
        if len(batch) > METADATA_BATCH_BYTES_MAX:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{len(batch)} bytes of metadata records exceed {METADATA_BATCH_BYTES_MAX}",
            )
        self._log.appender.append([Batch(bytearray(batch))], epoch, now_ms)
        self.unsnapshotted_bytes += len(batch)
        return self.end_offset

    def append_fetched(self, records: Buffer, epoch: int, now_ms: int) -> list[Batch]:
        """Append records of the leader of ``epoch`` at its offsets; CORRUPT_MESSAGE if they do not
        fit."""
        batches = whole_batches(records)
        offset, last_epoch = self.end_offset, self.last_epoch
        for batch in batches:
            placed = batch.base_offset == offset and last_epoch <= batch.leader_epoch <= epoch
            if not placed or not batch.crc_ok():
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE, f"{batch} does not follow {offset} of {last_epoch}"
                )
            offset, last_epoch = batch.next_offset, batch.leader_epoch
        if batches:
            self._log.appender.append_as_follower(batches, now_ms)
            self.unsnapshotted_bytes += sum(batch.size for batch in batches)
            self._note_batches(batches)
        return batches

    def truncate(self, offset: int) -> None:
        """Drop the log from here on; the voters before it count again."""
        self._log.truncate_to(offset)
        while self._quorum[-1][0] >= offset:
            self._quorum.pop()

    def sync(self) -> None:
        """Make everything appended so far durable; after a failure the log is offline."""
        self._log.durability.sync()

    @property
    def is_offline(self) -> bool:
        return self._log.is_offline

    def commit(self, high_watermark: int) -> None:
        self._log.high_watermark = high_watermark

    def close(self) -> None:
        self._log.close()

    def read(self, offset: int, end_offset: int) -> list[Batch]:
        """Some batches from ``offset`` on, none beyond ``end_offset``."""
        if offset >= end_offset:
            return []
        found = self._log.reader.read(offset, _READ_BYTES, end_offset, min_one=True, block=True)
        return [batch for batch in split_batches(found.buffer) if batch.next_offset <= end_offset]

    def read_bytes(self, offset: int, bytes_max: int) -> memoryview:
        """Batches for a follower, committed or not; at least one, however large."""
        found = self._log.reader.read(offset, bytes_max, self.end_offset, min_one=True, block=True)
        return memoryview(found.buffer)

    def scan(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Every batch of a range."""
        while batches := self.read(offset, end_offset):
            yield from batches
            offset = batches[-1].next_offset

    # -- snapshots -----------------------------------------------------------------------------

    def read_snapshot(self, snapshot_id: SnapshotId) -> Snapshot:
        return read_snapshot(self._directory / snapshot_id.file_name)

    def write_snapshot(
        self, end_offset: int, records: Sequence[KeyValue], now_ms: int
    ) -> KnownSnapshot:
        """Write the state as of ``end_offset``; ``add_snapshot`` then makes it count."""
        last = self.read(end_offset - 1, end_offset)
        invariant(last, f"a snapshot at {end_offset} within a batch")
        snapshot_id = SnapshotId(end_offset, last[-1].leader_epoch)
        snapshot = Snapshot(records, self._quorum_at(end_offset), last[-1].max_timestamp)
        path = self._directory / snapshot_id.file_name
        write_snapshot(self._files, path, encode_snapshot(snapshot_id.epoch, snapshot, now_ms))
        return KnownSnapshot(snapshot_id, path.stat().st_size, snapshot.last_timestamp)

    def read_piece(self, snapshot_id: SnapshotId, position: int, size: int) -> bytes:
        """Some bytes of a snapshot file; empty if it was deleted meanwhile."""
        try:
            with (self._directory / snapshot_id.file_name).open("rb") as file:
                file.seek(position)
                return file.read(size)
        except FileNotFoundError:
            return b""

    def write_piece(self, snapshot_id: SnapshotId, position: int, data: Buffer) -> None:
        write_piece(self._files, self._directory / snapshot_id.file_name, position, data)

    def install(self, snapshot_id: SnapshotId) -> Snapshot:
        """Install a fetched snapshot: the log continues, empty, at its end."""
        path = self._directory / snapshot_id.file_name
        snapshot = finish_pieces(self._files, path)
        self._log.truncate_fully_and_start_at(snapshot_id.offset)
        older, known = self._snapshots, path.stat().st_size
        self._snapshots = [KnownSnapshot(snapshot_id, known, snapshot.last_timestamp)]
        self._quorum = [(snapshot_id.offset - 1, snapshot.quorum)]
        self.unsnapshotted_bytes = 0
        for each in older:
            if each.id != snapshot_id:
                self._files.remove(str(self._directory / each.id.file_name))
        return snapshot

    def add_snapshot(self, snapshot: KnownSnapshot, now_ms: int) -> None:
        """Register a written snapshot, and delete what is no longer needed."""
        self._snapshots.append(snapshot)
        self.clean(now_ms)

    def clean(self, now_ms: int) -> None:
        """Delete expired snapshots, and the segments that are no longer needed."""
        kept = self._config.retention.first_kept(self._snapshots, self._log.size, now_ms)
        if kept is None:
            return
        self._log.trimming.delete_records_before(kept.offset)
        self._log.trimming.delete_old_segments(now_ms)
        for snapshot in [each for each in self._snapshots if each.id < kept]:
            self._files.remove(str(self._directory / snapshot.id.file_name))
            self._snapshots.remove(snapshot)

    def _quorum_at(self, end_offset: int) -> QuorumRecords:
        return next(known for offset, known in reversed(self._quorum) if offset < end_offset)

    def _recover_snapshots(self) -> None:
        kept: list[SnapshotId] = []
        dropped: list[Path] = []
        for path in self._directory.iterdir():
            parsed = parse_name(path.name)
            if parsed is None:
                continue
            snapshot_id, suffix = parsed
            if suffix == SUFFIX and snapshot_id.offset >= self.start_offset:
                kept.append(snapshot_id)
            else:
                dropped.append(path)
        kept.sort()
        if self.start_offset > 0 and not kept:
            raise StorageError(
                f"{self._directory} begins at offset {self.start_offset} but has no snapshot of "
                "what came before"
            )
        for path in dropped:
            self._files.remove(str(path))
        for snapshot_id in kept:
            path = self._directory / snapshot_id.file_name
            header = read_header(path)
            known = KnownSnapshot(snapshot_id, path.stat().st_size, header.last_timestamp)
            self._snapshots.append(known)
            self._quorum = [(snapshot_id.offset - 1, header.quorum)]
        if kept and self._is_behind(kept[-1]):
            # The log was lost, or a follower stopped between fetching a snapshot and installing it.
            self._log.truncate_fully_and_start_at(kept[-1].offset)

    def _is_behind(self, snapshot_id: SnapshotId) -> bool:
        end = SnapshotId(self.end_offset, max(0, self._log.latest_epoch))
        return (snapshot_id.epoch, snapshot_id.offset) > (end.epoch, end.offset)

    def _replay_control(self) -> None:
        latest = self.latest_snapshot
        start = max(self.start_offset, latest.offset if latest else 0)
        for batch in self.scan(start, self.end_offset):
            self.unsnapshotted_bytes += batch.size
            self._note_batches([batch])

    def _note_batches(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            if batch.is_control:
                for record in decode_records(batch):
                    self._note_control(record.offset, record.key, record.value)

    def _note_control(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        _, message = parse_control(key, value)
        if isinstance(message, KRaftVersionRecord | VotersRecord):
            self._quorum.append((offset, self.quorum.with_control(message)))


def whole_batches(records: Buffer) -> list[Batch]:
    """The batches of a fetch response, the last of which may be truncated."""
    view = memoryview(records)
    end = 0
    while len(view) - end >= HEADER_BYTES:
        size = batch_size(view, end)
        if size > len(view) - end:
            break
        # An invalid one is left to ``split_batches``, which refuses it.
        end += max(size, HEADER_BYTES)
    return list(split_batches(view[:end]))
