"""The small files beside the segments: the leader epochs, and the topic id.

They are written on change, and may be out of date without harm: the epochs are also in the batches,
and the controller knows the topic id.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    encode_epochs,
    encode_partition_metadata,
)
from skylog.log.epochs import LeaderEpochs

if TYPE_CHECKING:
    from skylog.log.checkpoints import EpochStart
    from skylog.log.log import Log

_logger = get_logger("log")


class Companions:
    """The small files of one log. ``epochs`` may be read; it is changed only here, on the event
    loop."""

    __slots__ = (
        "_epochs_unsynced",
        "_epochs_unwritten",
        "_log",
        "_topic_id_unwritten",
        "epochs",
        "is_behind",
        "topic_id",
    )

    epochs: LeaderEpochs

    def __init__(self, log: Log) -> None:
        self._log = log
        self.topic_id: Uuid = ZERO_UUID
        self._topic_id_unwritten = False
        self._epochs_unwritten = False
        self._epochs_unsynced = True
        # Whether a file is to be written.
        self.is_behind = False

    def begin(self, topic_id: Uuid | None, *, changed: bool) -> None:
        """The log was opened; ``changed`` if recovery found other epochs than the file has."""
        self.topic_id = topic_id or ZERO_UUID
        self._epochs_unwritten = self.is_behind = changed
        self.write()

    # -- changes -------------------------------------------------------------------------------

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Set the topic of this log, once."""
        if self.topic_id == topic_id:
            return
        if self.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self._log.directory} belongs to {self.topic_id}, not to {topic_id}",
            )
        self.topic_id = topic_id
        self._topic_id_unwritten = self.is_behind = True
        self._log.host.unwritten(self._log)

    def assign_epoch(self, epoch: int) -> None:
        """A leader's epoch begins at the end of the log."""
        self._changed(self.epochs.assign(epoch, self._log.log_end_offset))

    def note_epoch(self, epoch: int, base_offset: int) -> None:
        """A batch of a new epoch was appended; the appender then calls ``write``."""
        self.epochs.assign(epoch, base_offset)
        self._epochs_unwritten = self.is_behind = True

    def truncate_start(self, offset: int) -> None:
        self._changed(self.epochs.truncate_start(offset))

    def truncate_end(self, offset: int) -> None:
        self._changed(self.epochs.truncate_end(offset))

    def restore(self, epochs: Iterable[EpochStart]) -> None:
        """Those of the records below the end of an empty log, durably. Raises OSError."""
        restored = LeaderEpochs(epochs)
        restored.truncate_start(self._log.log_start_offset)
        path = f"{self._log.directory}/{LEADER_EPOCH_CHECKPOINT}"
        self._log.files.replace(path, encode_epochs(restored).encode())
        self.epochs = restored
        self._epochs_unwritten = self._epochs_unsynced = False

    def _changed(self, changed: bool) -> None:
        if changed:
            self._epochs_unwritten = self.is_behind = True
            self._log.host.unwritten(self._log)

    # -- files ---------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the files that are out of date; after a failure the next call tries again."""
        try:
            if self._topic_id_unwritten:
                self._put(PARTITION_METADATA, encode_partition_metadata(self.topic_id))
                self._topic_id_unwritten = False
            if self._epochs_unwritten:
                self._epochs_unsynced = True
                self._put(LEADER_EPOCH_CHECKPOINT, encode_epochs(self.epochs))
                self._epochs_unwritten = False
            self.is_behind = False
        except OSError as error:
            directory = self._log.directory
            _logger.warning("small files not written", directory=directory, error=str(error))

    def _put(self, name: str, content: str) -> None:
        log = self._log
        log.files.replace(f"{log.directory}/{name}", content.encode(), sync=False)

    def sync_epochs(self) -> bool:
        """False if they were not written: batches below the recovery point are not read again."""
        if self._epochs_unwritten:
            return False
        if self._epochs_unsynced:
            self._epochs_unsynced = False
            self._log.files.sync(f"{self._log.directory}/{LEADER_EPOCH_CHECKPOINT}")
        return True

    def sync_directory(self) -> None:
        """Make the names of the log's files, and its own, durable. Raises OSError."""
        files, directory = self._log.files, self._log.directory
        files.sync(f"{directory}/{PARTITION_METADATA}")
        files.sync_directory(directory)
        files.sync_directory(str(Path(directory).parent))
