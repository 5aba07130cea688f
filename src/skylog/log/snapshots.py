"""The producers' state on disk, as of the log's end whenever a segment begins.

Without a snapshot, a start only reads more headers: so one that cannot be written is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import encode_snapshot
from skylog.log.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from skylog.log.producers import Producers
from skylog.log.replaying import producers_at, read_snapshot
from skylog.log.segment import Segment

if TYPE_CHECKING:
    from skylog.log.log import Log

_logger = get_logger("log")


class ProducerSnapshots:
    """The ``.snapshot`` files of one log."""

    __slots__ = ("_log", "_unsynced", "taken_offset")

    def __init__(self, log: Log) -> None:
        self._log = log
        # The offset of the latest one.
        self.taken_offset = 0
        self._unsynced: tuple[str, ...] = ()

    def path(self, offset: int) -> str:
        """The file of the state as of ``offset``."""
        return f"{self._log.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

    def take(self) -> None:
        """Write one for the log's end, unless it exists, as after recovery."""
        log = self._log
        end = log.log_end_offset
        path = self.path(end)
        if self.taken_offset != end:
            try:
                log.files.replace(path, encode_snapshot(log.producers), sync=False)
            except OSError as error:
                _logger.warning("no snapshot written", directory=log.directory, error=str(error))
                return
            self.taken_offset = end
        is_needed = log.config.copies or log.producers.first_open_offset is not None
        if is_needed and path not in self._unsynced:
            # Once the earlier segments are deleted, only the snapshot has these transactions. Those
            # of a tiered log may be deleted so soon that producers still repeat their batches.
            self._unsynced = (*self._unsynced, path)

    def restore(self, producers: Producers) -> None:
        """Write one of others than the log's own, durably. Raises OSError."""
        end = self._log.log_end_offset
        self._log.files.replace(self.path(end), encode_snapshot(producers))
        self.taken_offset = end

    def require(self, offset: int) -> None:
        """See that there is one at the base of a segment: a disk may have been full when it began,
        and a crash may have taken what was not synced. Blocks; may run on another thread.

        Raises OSError, or KafkaError if the segments before it are damaged.
        """
        log = self._log
        files, path = log.files, self.path(offset)
        if read_snapshot(files, path) is not None:
            return
        segments = log.segments
        known = [segment.base_offset for segment in segments if segment.base_offset < offset]
        files.replace(path, encode_snapshot(producers_at(offset, segments, self._read, known)))

    def _read(self, offset: int) -> Producers | None:
        entries = read_snapshot(self._log.files, self.path(offset))
        return None if entries is None else Producers(entries)

    def keep(self, offset: int) -> None:
        """Sync the one at the base of a segment, whose predecessors are about to be deleted: by
        now it is durable, unless tiering was switched on since. Raises OSError."""
        self._log.files.sync(self.path(offset))

    def sync(self) -> None:
        """Sync those that nothing else can replace; may run on another thread."""
        paths, self._unsynced = self._unsynced, ()
        for path in paths:
            self._log.files.sync(path)

    def rename_deleted(self, segment: Segment) -> list[str]:
        """Rename the one at the start of a segment as deleted; returns its new name, if any.

        Raises OSError.
        """
        path = self.path(segment.base_offset)
        try:
            self._log.files.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            return []
        return [path + DELETED_SUFFIX]
