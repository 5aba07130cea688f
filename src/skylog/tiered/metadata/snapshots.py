"""Snapshot files of remote logs: one for each partition of the metadata topic. A cache.

A start without them reads the metadata topic from its beginning, with the same result. So a file
that is missing, cut, of another topic or in any way odd is ignored.

Header (magic, CRC of the rest, id of the metadata topic, its partition, the first offset that is
not contained), then for each remote log its state and its segments: values as on the topic, each
behind its length.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import REMOTE_METADATA_SNAPSHOT_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.tiered.metadata.machine import RemoteLog
from skylog.wire.messages.remote_partition_snapshot_record import RemotePartitionSnapshotRecord
from skylog.wire.metadata_records import decode_remote_log, encode_remote_log

_log = get_logger("tiered.snapshots")
NAME: Final = "remote-log-metadata-"
_MAGIC: Final = b"skyrlm01"
_HEADER: Final = Struct(">8sI16siq")
_CRC_FROM: Final = 12
_LENGTH: Final = Struct(">I")
# Frame version, type and version of a record 3; its body follows.
_SEGMENT_FRAME: Final = bytes((1, 3, 0))


class Snapshot(NamedTuple):
    """Remote logs as of an offset of a partition of the metadata topic."""

    offset: int
    logs: Sequence[RemoteLog]


class RemoteLogState(NamedTuple):
    """What ``RemoteLog.snapshot`` returns."""

    head: RemotePartitionSnapshotRecord
    segments: list[bytes]


class SnapshotFiles:
    """The files in one directory. All methods block."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def write(
        self, topic_id: Uuid, partition: int, offset: int, states: Iterable[RemoteLogState]
    ) -> None:
        """A file that cannot be written is given up: the one before it stays."""
        path = self._path(partition)
        temporary = path.with_suffix(".tmp")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(encode_snapshot(topic_id, partition, offset, states))
            os.replace(temporary, path)  # noqa: PTH105 - the same, but one way in this project
        except OSError as error:
            _log.warning("snapshot not written", file=str(path), error=str(error))

    def read(self, topic_id: Uuid, partition: int) -> Snapshot | None:
        """None if there is none that can be trusted."""
        path = self._path(partition)
        try:
            if path.stat().st_size > REMOTE_METADATA_SNAPSHOT_BYTES_MAX:
                raise ValueError("it is too large")
            return decode_snapshot(path.read_bytes(), topic_id, partition)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, ProtocolError) as error:
            _log.warning("snapshot ignored", file=str(path), error=str(error))
            return None

    def _path(self, partition: int) -> Path:
        # Files beside the logs: Kafka does not open a log directory that has other directories.
        return self._directory / f"{NAME}{partition}.snapshot"


def encode_snapshot(
    topic_id: Uuid, partition: int, offset: int, states: Iterable[RemoteLogState]
) -> bytes:
    parts: list[bytes] = []
    for head, segments in states:
        value = encode_remote_log(head)
        parts += (_LENGTH.pack(len(value)), value)
        for segment in segments:
            parts += (_LENGTH.pack(len(segment) + len(_SEGMENT_FRAME)), _SEGMENT_FRAME, segment)
    body = b"".join(parts)
    header = _HEADER.pack(_MAGIC, 0, topic_id, partition, offset)[_CRC_FROM:]
    return _HEADER.pack(_MAGIC, crc32c(body, crc32c(header)), topic_id, partition, offset) + body


def decode_snapshot(data: bytes, topic_id: Uuid, partition: int) -> Snapshot:
    """ValueError or ProtocolError for anything but a snapshot of this partition."""
    found_id, found, offset, values = open_snapshot(data)
    if (found_id, found) != (topic_id, partition) or offset < 0:
        raise ValueError("it is of another metadata topic")
    logs = []
    for value in values:
        head = decode_remote_log(value)
        if not isinstance(head, RemotePartitionSnapshotRecord) or head.segment_count < 0:
            raise ValueError("it has segments of no partition")
        logs.append(RemoteLog.restored(head, _segments(values, head.segment_count)))
    return Snapshot(offset, logs)


def open_snapshot(data: bytes) -> tuple[Uuid, int, int, Iterator[bytes]]:
    """The metadata topic's id, its partition, the offset that the snapshot stands for, and its
    values; ValueError."""
    if len(data) < _HEADER.size:
        raise ValueError("it is shorter than its header")
    magic, checksum, topic_id, partition, offset = _HEADER.unpack_from(data)
    if magic != _MAGIC or crc32c(memoryview(data)[_CRC_FROM:]) != checksum:
        raise ValueError("it is damaged, or of another version")
    return Uuid(topic_id), partition, offset, _values(memoryview(data)[_HEADER.size :])


def _segments(values: Iterator[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        value = next(values, b"")
        if not value.startswith(_SEGMENT_FRAME):
            raise ValueError("it has fewer segments than it says")
        yield value[len(_SEGMENT_FRAME) :]


def _values(data: memoryview) -> Iterator[bytes]:
    position, end = 0, len(data)
    while position < end:
        if end - position < _LENGTH.size:
            raise ValueError("it ends in a length")
        (size,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if size > end - position:
            raise ValueError("it ends in a record")
        yield bytes(data[position : position + size])
        position += size
