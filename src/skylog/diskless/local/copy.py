"""The newest records of one partition in a log of Kafka's format, on this broker's disk.

It is never the only copy, so nothing is synced and no file is trusted: every batch is verified when
it is read, and a damaged copy is removed and created again. All methods block, except a
non-blocking ``read``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from skylog.diskless.regions import Region
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.log.config import LONG_MAX, LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.recovery import Checkpointed
from skylog.wire.batch import MAGIC, Batch, split_batches
from skylog.wire.buffers import Buffer

_log = get_logger("diskless.local")


@dataclass(frozen=True, slots=True)
class Place:
    """The partition of a copy, and its directory."""

    topic: str
    topic_id: Uuid
    index: int
    directory: str


class SpoiledError(Exception):
    """The files are damaged."""


def log_config(segment_bytes: int, kept_bytes: int, retention_ms: int) -> LogConfig:
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=LONG_MAX,
        retention_bytes=kept_bytes,
        retention_ms=retention_ms,
        file_delete_delay_ms=0,
    )


class LocalCopy:
    """One writer at a time, on any thread; reads may run concurrently."""

    __slots__ = ("_end", "_files", "_log")

    def __init__(self, log: Log, files: Files) -> None:
        self._log = log
        self._files = files
        self._show_end()

    @classmethod
    def open(cls, place: Place, files: Files, config: LogConfig, now_ms: int) -> Self | None:
        """The copy of an earlier run; None if there is none that can be used."""
        if not Path(place.directory).is_dir():
            return None
        try:
            log = _open(place, files, config, now_ms, 0)
        except Exception as error:  # noqa: BLE001 - any error: there is another copy
            _log.warning("a local copy is unusable", directory=place.directory, why=str(error))
        else:
            if log.companions.topic_id == place.topic_id:
                return cls(log, files)
        remove_directory(files, place.directory)
        return None

    @classmethod
    def create(cls, place: Place, files: Files, config: LogConfig, now_ms: int, start: int) -> Self:
        """An empty copy that begins at an offset, replacing any existing one. Raises OSError."""
        remove_directory(files, place.directory)
        log = _open(place, files, config, now_ms, start)
        log.companions.assign_topic_id(place.topic_id)
        return cls(log, files)

    @property
    def region(self) -> Region:
        return Region(self._log.log_start_offset, self._end)

    @property
    def size(self) -> int:
        return self._log.size

    def takes(self, added_bytes: int, copy_bytes: int) -> bool:
        """Whether this many bytes can be added without deleting any."""
        return self._log.size + added_bytes <= copy_bytes

    def append(self, records: Buffer, now_ms: int) -> int:
        """Add placed batches, except those already here; returns the bytes added.

        Raises KafkaError if they do not follow the copy's end, or cannot be written.
        """
        log, added = self._log, 0
        end = log.log_end_offset
        batches = [batch for batch in split_batches(records) if batch.base_offset >= end]
        if batches and batches[0].base_offset != end:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{batches[0]} does not follow {end}")
        for part in _parts(batches, log.config.segment_bytes):
            size = sum(batch.size for batch in part)
            if size > log.config.segment_bytes:  # a single batch that is larger than a segment
                log.config = replace(log.config, segment_bytes=size)
            log.appender.append_as_follower(part, now_ms)
            added += size
        self._show_end()
        return added

    def _show_end(self) -> None:
        """Everything appended is committed; readers on other threads see it from now on."""
        self._log.high_watermark = self._end = self._log.log_end_offset

    def trim(self, log_start: int, config: LogConfig, now_ms: int) -> None:
        """Delete what is deleted in the partition, too old or too much. Raises KafkaError."""
        log = self._log
        if config != log.config:
            log.config = config
        log.trimming.delete_records_before(min(log_start, log.log_end_offset))
        log.trimming.delete_old_segments(now_ms)
        log.producers.expire(now_ms, config.producer_id_expiration_ms)

    def read(self, offset: int, max_bytes: int, *, min_one: bool, block: bool) -> memoryview:
        """Whole, verified batches, starting with the one that contains ``offset``.

        Raises SpoiledError, also if the files are being changed meanwhile; WouldBlock.
        """
        end = self._end
        try:
            read = self._log.reader.read
            found = read(offset, max_bytes, end, min_one=min_one, block=block).buffer
            expected = -1
            for batch in split_batches(found):
                if expected < 0:
                    in_place = batch.base_offset <= offset <= batch.last_offset
                else:
                    in_place = batch.base_offset == expected
                if not in_place or batch.magic != MAGIC or not batch.crc_ok():
                    raise SpoiledError(f"{batch} is not the batch at {offset}")
                expected = batch.next_offset
        except KafkaError as error:
            raise SpoiledError(str(error)) from error
        if min_one and offset < end and not found:
            raise SpoiledError(f"there is no batch at {offset}")
        return found

    def agrees_with(self, records: Buffer) -> bool:
        """Whether the last batch here is among ``records``, byte for byte."""
        start, end = self.region
        if start == end:
            return True
        for batch in split_batches(records):
            if batch.next_offset == end:
                try:
                    mine = self.read(batch.base_offset, batch.size, min_one=True, block=True)
                except SpoiledError:
                    return False
                return bytes(mine) == bytes(batch.buffer)
        return False

    def close(self) -> None:
        """Close the files so that they can be reopened quickly. Raises OSError."""
        self._log.segments[-1].finish_indexes()
        self._files.forget_under(self._log.directory)

    def remove(self) -> None:
        self._log.mark_deleted()
        remove_directory(self._files, self._log.directory)


def _open(place: Place, files: Files, config: LogConfig, now_ms: int, start: int) -> Log:
    known = Checkpointed(clean=True, log_start_offset=start)
    key = place.topic, place.index
    return Log.open(key, place.directory, LogHost(files), config, now_ms, known)


def _parts(batches: list[Batch], bytes_max: int) -> Iterator[list[Batch]]:
    """Runs of batches that fit into a segment each."""
    part: list[Batch] = []
    size = 0
    for batch in batches:
        if part and size + batch.size > bytes_max:
            yield part
            part, size = [], 0
        part.append(batch)
        size += batch.size
    if part:
        yield part


def remove_directory(files: Files, directory: str) -> None:
    """Remove a copy's files. Raises OSError if one of them remains."""
    if Path(directory).is_dir():
        shutil.rmtree(directory)
    files.forget_under(directory)  # not before: a reader may open one until it is gone
