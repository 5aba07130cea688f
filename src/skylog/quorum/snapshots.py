"""Snapshots of the metadata log: ``<end offset>-<epoch>.checkpoint``, in Kafka's format (KIP-630).

A snapshot is a log by itself: a control batch with header, KRaft version and voters, batches of
records, a control batch with the footer. A file without its footer is incomplete. It is written to
a temporary file and renamed, so a crash leaves the old state or the new one.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skylog.kernel.errors import KafkaError, ProtocolError, StorageError
from skylog.kernel.limits import METADATA_BATCH_BYTES_MAX
from skylog.log.files import Files
from skylog.quorum.control import QuorumRecords
from skylog.replicated.log import KeyValue
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, Batch, batch_size
from skylog.wire.buffers import Buffer
from skylog.wire.control_records import ControlType, control_record, parse_control
from skylog.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from skylog.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from skylog.wire.records import decode_records, encode_batch

SUFFIX: Final = ".checkpoint"
PARTIAL_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"
BOOTSTRAP_NAME: Final = "bootstrap.checkpoint"
_NAME: Final = re.compile(r"(\d{20})-(\d{10})(?:-[^.]*)?(\.checkpoint(?:\.part|\.deleted)?)")
# A record needs at most this many bytes besides its key and value.
_RECORD_OVERHEAD: Final = 64


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """The offset after its last record, and that record's epoch."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}{SUFFIX}"


# Written by formatting: no records, only the voters.
BOOTSTRAP_ID: Final = SnapshotId(0, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The complete contents of a snapshot."""

    records: Sequence[KeyValue]
    quorum: QuorumRecords
    last_timestamp: int


def parse_name(name: str) -> tuple[SnapshotId, str] | None:
    """The snapshot and the suffix, of a complete, partial or deleted file."""
    match = _NAME.fullmatch(name)
    return (SnapshotId(int(match[1]), int(match[2])), match[3]) if match else None


def encode_snapshot(
    epoch: int,
    snapshot: Snapshot,
    now_ms: int,
    batch_bytes_max: int = METADATA_BATCH_BYTES_MAX,
) -> Iterator[bytes]:
    """The file's batches, one by one."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=snapshot.last_timestamp)
    control = [
        control_record(ControlType.SNAPSHOT_HEADER, header, 0),
        *snapshot.quorum.to_control(),
    ]
    offset = len(control)
    yield encode_batch(control, base_offset=0, timestamp=now_ms, leader_epoch=epoch, control=True)
    for group in _groups(snapshot.records, batch_bytes_max):
        yield encode_batch(group, base_offset=offset, timestamp=now_ms, leader_epoch=epoch)
        offset += len(group)
    footer = [control_record(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 0)]
    yield encode_batch(
        footer, base_offset=offset, timestamp=now_ms, leader_epoch=epoch, control=True
    )


def _groups(records: Sequence[KeyValue], bytes_max: int) -> Iterator[list[KeyValue]]:
    group: list[KeyValue] = []
    size = HEADER_BYTES
    for key, value in records:
        added = len(key or b"") + len(value or b"") + _RECORD_OVERHEAD
        if group and size + added > bytes_max:
            yield group
            group, size = [], HEADER_BYTES
        group.append((key, value))
        size += added
    if group:
        yield group


def read_batches(path: Path) -> Generator[Batch, None, None]:
    """Every batch of a snapshot file, verified; StorageError if one is damaged."""
    with path.open("rb") as file:
        while prefix := file.read(LOG_OVERHEAD):
            size = batch_size(prefix, 0) if len(prefix) == LOG_OVERHEAD else 0
            # A record may be as large as the batch limit, so a batch may be twice as large.
            if not HEADER_BYTES <= size <= 2 * METADATA_BATCH_BYTES_MAX:
                raise StorageError(f"{path} is damaged: a batch claims {size} bytes")
            data = prefix + file.read(size - LOG_OVERHEAD)
            if len(data) < size:
                raise StorageError(f"{path} is damaged: it ends within a batch")
            batch = Batch(data)
            if not batch.crc_ok():
                raise StorageError(f"{path} is damaged: wrong checksum at {batch.base_offset}")
            yield batch


def read_header(path: Path) -> Snapshot:
    """A snapshot's first batch: everything but the records."""
    with contextlib.closing(read_batches(path)) as batches:
        return _collect(path, itertools.islice(batches, 1))[0]


def read_snapshot(path: Path) -> Snapshot:
    """The whole file; StorageError if it is damaged or has no footer."""
    snapshot, whole = _collect(path, read_batches(path))
    if not whole:
        raise StorageError(f"{path} is damaged: it has no footer")
    return snapshot


def _collect(path: Path, batches: Iterable[Batch]) -> tuple[Snapshot, bool]:
    """The contents of the batches, and whether the last of them is the footer."""
    records: list[KeyValue] = []
    quorum = QuorumRecords()
    last_timestamp, whole = -1, False
    try:
        for batch in batches:
            decoded = decode_records(batch)
            whole = False
            if not batch.is_control:
                records += [(record.key, record.value) for record in decoded]
                continue
            for record in decoded:
                _, message = parse_control(record.key, record.value)
                quorum = quorum.with_control(message)
                if isinstance(message, SnapshotHeaderRecord):
                    last_timestamp = message.last_contained_log_timestamp
                whole = isinstance(message, SnapshotFooterRecord)
    except (KafkaError, ProtocolError) as error:
        raise StorageError(f"{path} is damaged: {error}") from error
    return Snapshot(records, quorum, last_timestamp), whole


def write_snapshot(files: Files, path: Path, batches: Iterator[bytes]) -> None:
    """Write a temporary file, sync, rename, sync the directory. The file never changes again."""
    partial = partial_path(path)
    # A file left by a crash may already be read-only.
    files.remove(str(partial))
    try:
        _write(files, partial, batches)
        files.rename(str(partial), str(path))
    except OSError:
        with contextlib.suppress(OSError):  # partial files must not fill the disk
            files.remove(str(partial))
        raise
    files.sync_directory(str(path.parent))


def partial_path(path: Path) -> Path:
    """The path of a snapshot until it is complete."""
    return path.with_name(path.name.removesuffix(SUFFIX) + PARTIAL_SUFFIX)


def write_piece(files: Files, path: Path, position: int, data: Buffer) -> None:
    """Store a chunk of a fetched snapshot in a temporary file; the first one starts over."""
    partial = partial_path(path)
    if position == 0:
        files.remove(str(partial))
        files.create(str(partial))
    files.write_all(str(partial), [data], position)


def finish_pieces(files: Files, path: Path) -> Snapshot:
    """Complete a snapshot whose chunks have all been written; StorageError if it is damaged."""
    partial = partial_path(path)
    files.sync(str(partial))
    try:
        snapshot = read_snapshot(partial)
    except StorageError:
        files.remove(str(partial))
        raise
    partial.chmod(0o400)
    files.rename(str(partial), str(path))
    files.sync_directory(str(path.parent))
    return snapshot


def _write(files: Files, path: Path, batches: Iterator[bytes]) -> None:
    files.create(str(path))
    position = 0
    for batch in batches:
        files.write_all(str(path), [batch], position)
        position += len(batch)
    files.sync(str(path))
    path.chmod(0o400)
