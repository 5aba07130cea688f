"""The services that a log needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from skylog.log.files import Files

if TYPE_CHECKING:
    from skylog.log.log import Log


class LogListener(Protocol):
    """Follows all logs of a broker, on the event loop."""

    def rolled(self, log: Log) -> None: ...

    def start_moved(self, log: Log) -> None: ...


class LogHost:
    """This implementation does everything at once; the log manager defers it."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._listeners: list[LogListener] = []

    def add_listener(self, listener: LogListener) -> None:
        self._listeners.append(listener)

    def rolled(self, log: Log) -> None:
        """Segments wait to be synced."""
        for listener in self._listeners:
            listener.rolled(log)

    def start_moved(self, log: Log) -> None:
        """The log start should be checkpointed."""
        for listener in self._listeners:
            listener.start_moved(log)

    def pin_start(self, log: Log) -> None:
        """The log is about to begin elsewhere on this disk: write its log start now, unless the
        checkpoint has it. One without a remote part need not be there, but an old log start must
        not: it would promise records that are gone. Raises OSError."""

    def discard(self, log: Log, paths: list[str]) -> None:
        """Files that are no longer needed, after ``file.delete.delay.ms``."""
        for path in paths:
            self.files.remove(path)

    def unwritten(self, log: Log) -> None:
        """Small files of the log are to be written; the next append would write them, too."""
        log.companions.write()

    def failed(self, log: Log) -> None:
        """The log went offline."""
