"""The services that a log needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.log.files import Files

if TYPE_CHECKING:
    from skylog.log.log import Log


class LogHost:
    """This implementation does everything at once; the log manager defers it."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def rolled(self, log: Log) -> None:
        """Segments wait to be synced."""

    def start_moved(self, log: Log) -> None:
        """The log start should be checkpointed."""

    def pin_start(self, log: Log) -> None:
        """The log is about to begin above its log start on this disk: if no checkpoint has the log
        start, or a lower one, write it now. Raises OSError."""

    def discard(self, log: Log, paths: list[str]) -> None:
        """Files that are no longer needed, after ``file.delete.delay.ms``."""
        for path in paths:
            self.files.remove(path)

    def unwritten(self, log: Log) -> None:
        """Small files of the log are to be written; the next append would write them, too."""
        log.companions.write()

    def failed(self, log: Log) -> None:
        """The log went offline."""
