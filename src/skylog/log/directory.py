"""The files of a log directory that cover all partitions: checkpoints and the clean-shutdown
mark."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    NO_BROKER_EPOCH,
    RECOVERY_POINT_CHECKPOINT,
    Malformed,
    TopicPartition,
    decode_clean_shutdown,
    decode_offsets,
    encode_clean_shutdown,
    encode_offsets,
)
from skylog.log.files import Files
from skylog.log.log import Log
from skylog.log.names import is_deleted_directory, parse_directory_name
from skylog.log.recovery import Checkpointed

_logger = get_logger("log.directory")


class LogDirectory:
    """One directory of ``log.dirs``."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self.was_clean = False
        self.broker_epoch = NO_BROKER_EPOCH
        self.logs_count = 0
        self._files = files
        # The event loop and the executor's threads write checkpoints. A log that was deleted
        # meanwhile is left out, so that an old list does not restore its offsets.
        self._lock = threading.Lock()
        # The current contents of each checkpoint, so that nothing is written twice.
        self._written: dict[str, dict[TopicPartition, int]] = {}

    def prepare(self) -> None:
        """Read the checkpoints and remove the clean-shutdown mark, before anything is appended."""
        for name in (
            RECOVERY_POINT_CHECKPOINT,
            LOG_START_CHECKPOINT,
            HIGH_WATERMARK_CHECKPOINT,
            CLEANER_CHECKPOINT,
        ):
            self._written[name] = self._read(name)
        content = self._files.read_small(self._at(CLEAN_SHUTDOWN), 4096)
        self.was_clean = content is not None
        if content is not None:
            self.broker_epoch = decode_clean_shutdown(content.decode(errors="replace"))
            self._files.remove(self._at(CLEAN_SHUTDOWN))
            # If the mark came back after a power failure, recovery would be skipped.
            self._files.sync_directory(self.path)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _read(self, name: str) -> dict[TopicPartition, int]:
        content = self._files.read_small(self._at(name), LOG_CHECKPOINT_BYTES_MAX) or b""
        try:
            return decode_offsets(content.decode())
        except (Malformed, UnicodeDecodeError) as fault:
            _logger.warning("checkpoint ignored", path=self._at(name), fault=str(fault))
            return {}

    def checkpointed(self, key: TopicPartition) -> Checkpointed:
        """What was known of a partition when the broker stopped."""
        starts = self._written[LOG_START_CHECKPOINT]
        return Checkpointed(
            self.was_clean,
            self._written[RECOVERY_POINT_CHECKPOINT].get(key, 0),
            starts.get(key, 0),
            key in starts,
            self._written[HIGH_WATERMARK_CHECKPOINT].get(key, 0),
        )

    def has_start(self, log: Log) -> bool:
        """Whether the checkpoint has the log start of ``log``, or rightly none."""
        found = self._written[LOG_START_CHECKPOINT].get((log.topic, log.partition))
        return found == log.log_start_offset or (found is None and not log.config.remote)

    def clean_offset(self, key: TopicPartition) -> int:
        return self._written[CLEANER_CHECKPOINT].get(key, 0)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a live directory here."""
        found = []
        for path in Path(self.path).iterdir():
            parsed = parse_directory_name(path.name)
            if parsed is not None and path.is_dir():
                found.append(parsed)
        return sorted(found)

    def deleted(self) -> list[str]:
        """Directories that are to be deleted."""
        return [str(p) for p in Path(self.path).iterdir() if is_deleted_directory(p.name)]

    def knows(self, key: TopicPartition) -> bool:
        """Whether a checkpoint still lists a partition."""
        return any(key in offsets for offsets in self._written.values())

    def rewrite(self, logs: Sequence[Log]) -> None:
        """Rewrite all checkpoints so that they list only these partitions; blocks."""
        self.write_offsets(logs)
        self.write_high_watermarks(logs)
        self.write_clean_offsets(logs)

    def write_high_watermarks(self, logs: Iterable[Log]) -> None:
        with self._lock:
            marks = {
                (log.topic, log.partition): log.high_watermark for log in logs if not log.is_deleted
            }
            self._write(HIGH_WATERMARK_CHECKPOINT, marks)

    def write_clean_offsets(self, logs: Iterable[Log]) -> None:
        """Checkpoint up to where logs are compacted; blocks."""
        with self._lock:
            cleaned = {
                (log.topic, log.partition): log.clean_offset
                for log in logs
                if log.clean_offset and not log.is_deleted
            }
            self._write(CLEANER_CHECKPOINT, cleaned)

    def write_offsets(self, logs: Iterable[Log]) -> None:
        """Checkpoint recovery points and log starts; blocks."""
        points: dict[TopicPartition, int] = {}
        starts: dict[TopicPartition, int] = {}
        with self._lock:
            for log in logs:
                if log.is_deleted:
                    continue
                key = log.topic, log.partition
                points[key] = log.durability.recovery_point
                start = log.log_start_offset
                # Of a log with a remote part always, once it is known: its first segment does not
                # tell.
                is_remote = log.config.remote and log.knows_start
                if is_remote or start != log.segments[0].base_offset:
                    starts[key] = start
            self._write(RECOVERY_POINT_CHECKPOINT, points)
            self._write(LOG_START_CHECKPOINT, starts)

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets == self._written.get(name):
            return
        self._files.replace(self._at(name), encode_offsets(offsets).encode())
        self._written[name] = dict(offsets)

    def mark_clean(self, broker_epoch: int) -> None:
        self._files.replace(self._at(CLEAN_SHUTDOWN), encode_clean_shutdown(broker_epoch).encode())
