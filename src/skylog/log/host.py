"""What a log asks of its surroundings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.log.files import Files

if TYPE_CHECKING:
    from skylog.log.writer import LogWriter


class LogHost:
    """This one does it all at once; the manager defers."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def rolled(self, log: LogWriter) -> None:
        """Segments wait for their sync."""

    def start_moved(self, log: LogWriter) -> None:
        """The log start should be checkpointed."""

    def discard(self, log: LogWriter, paths: list[str]) -> None:
        """Files nobody needs any more, after ``file.delete.delay.ms``."""
        for path in paths:
            self.files.remove(path)

    def unwritten(self, log: LogWriter) -> None:
        """Small files of the log wait to be written; the next append would do it, too."""
        log.write_companions()

    def failed(self, log: LogWriter) -> None:
        """The log went offline."""
