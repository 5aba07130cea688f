"""Snapshot files of a coordinator: ``<end offset>-<epoch>.checkpoint``, framed as KRaft's.

The last two are kept and the log reaches back to the older one, so that a damaged file costs only
time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from skylog.kernel.errors import KafkaError, ProtocolError, StorageError
from skylog.kernel.limits import METADATA_BATCH_BYTES_MAX
from skylog.log.files import Files
from skylog.quorum.snapshots import (
    PARTIAL_SUFFIX,
    SUFFIX,
    SnapshotId,
    parse_name,
    partial_path,
    read_batches,
    write_piece,
    write_snapshot,
)
from skylog.wire.batch import Compression
from skylog.wire.control_records import ControlType, control_record, parse_control
from skylog.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from skylog.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from skylog.wire.metadata_records import decode_diskless, encode_diskless
from skylog.wire.records import decode_records, encode_batch
from skylog.wire.schema import Message

KEPT: Final = 2


class Snapshots:
    """The snapshots in one directory. Blocks; used on an executor's thread."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory

    def ids(self) -> list[SnapshotId]:
        """The complete ones, oldest first."""
        parsed = (parse_name(path.name) for path in self._directory.iterdir())
        return sorted(found[0] for found in parsed if found and found[1] == SUFFIX)

    def written_ms(self, number: SnapshotId) -> int:
        """When the file was written, by the file system's clock."""
        return (self._directory / number.file_name).stat().st_mtime_ns // 1_000_000

    def remove_unfinished(self) -> None:
        """Remove files that a crash left incomplete."""
        for path in self._directory.glob(f"*{PARTIAL_SUFFIX}"):
            self._files.remove(str(path))

    def write(self, number: SnapshotId, records: Iterable[Message], timestamp_ms: int) -> None:
        batches = _encode(number.epoch, _politely(records), timestamp_ms)
        write_snapshot(self._files, self._directory / number.file_name, batches)

    def load(self, number: SnapshotId, apply: Callable[[list[Message], int], None]) -> None:
        """Pass the records to ``apply`` with the log's time; StorageError if the file is
        incomplete."""
        path = self._directory / number.file_name
        whole, timestamp_ms = False, -1
        try:
            for batch in read_batches(path):
                decoded = decode_records(batch)
                whole = False
                if not batch.is_control:
                    apply(
                        [one for r in decoded if (one := decode_diskless(r.value)) is not None],
                        timestamp_ms,
                    )
                    continue
                for record in decoded:
                    _, message = parse_control(record.key, record.value)
                    if isinstance(message, SnapshotHeaderRecord):
                        timestamp_ms = message.last_contained_log_timestamp
                        apply([], timestamp_ms)
                    whole = isinstance(message, SnapshotFooterRecord)
        except (KafkaError, ProtocolError, OSError) as error:
            raise StorageError(f"{path} is damaged: {error}") from error
        if not whole:
            raise StorageError(f"{path} is damaged: it has no footer")

    def read_piece(self, number: SnapshotId, position: int, size_max: int) -> tuple[bytes, int]:
        """A chunk of the file, and the total size; FileNotFoundError if the file is gone."""
        with (self._directory / number.file_name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(position)
            return file.read(size_max), size

    def digest(self, number: SnapshotId) -> bytes:
        """The digest of the whole file."""
        return _digest(self._directory / number.file_name)

    def write_piece(self, number: SnapshotId, position: int, data: bytes) -> None:
        """Store a chunk of a fetched snapshot in a temporary file; the first one starts over."""
        write_piece(self._files, self._directory / number.file_name, position, data)

    def finish_pieces(self, number: SnapshotId, digest: bytes) -> None:
        """Complete a snapshot whose chunks have all been written; StorageError if the digest
        differs."""
        path = self._directory / number.file_name
        aside = partial_path(path)
        self._files.sync(str(aside))
        if _digest(aside) != digest:
            self._files.remove(str(aside))
            raise StorageError(f"{path} is damaged: its digest differs from the original's")
        aside.chmod(0o400)
        self._files.rename(str(aside), str(path))
        self._files.sync_directory(str(path.parent))

    def remove(self, number: SnapshotId) -> None:
        self._files.remove(str(self._directory / number.file_name))


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).digest()


def _politely(records: Iterable[Message]) -> Iterator[Message]:
    """A snapshot takes long: after every record, other threads may run first."""
    for record in records:
        yield record
        time.sleep(0)


def _encode(epoch: int, records: Iterable[Message], timestamp_ms: int) -> Iterator[bytes]:
    header = SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms)
    offset = 1
    yield _control(ControlType.SNAPSHOT_HEADER, header, 0, epoch, timestamp_ms)
    group: list[tuple[bytes | None, bytes | None]] = []
    size = 0
    for record in records:
        value = encode_diskless(record)
        if group and size + len(value) > METADATA_BATCH_BYTES_MAX:
            yield _data(group, offset, epoch, timestamp_ms)
            offset += len(group)
            group, size = [], 0
        group.append((None, value))
        size += len(value)
    if group:
        yield _data(group, offset, epoch, timestamp_ms)
        offset += len(group)
    footer = SnapshotFooterRecord()
    yield _control(ControlType.SNAPSHOT_FOOTER, footer, offset, epoch, timestamp_ms)


def _data(
    group: list[tuple[bytes | None, bytes | None]], offset: int, epoch: int, timestamp_ms: int
) -> bytes:
    return encode_batch(
        group,
        base_offset=offset,
        timestamp=timestamp_ms,
        leader_epoch=epoch,
        codec=Compression.ZSTD,
    )


def _control(
    kind: ControlType, message: Message, offset: int, epoch: int, timestamp_ms: int
) -> bytes:
    return encode_batch(
        [control_record(kind, message, 0)],
        base_offset=offset,
        timestamp=timestamp_ms,
        leader_epoch=epoch,
        control=True,
    )
