"""Kafka's ``quorum-state`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from skylog.kernel.errors import StorageError
from skylog.kernel.limits import QUORUM_FILE_BYTES_MAX
from skylog.log.files import Files
from skylog.quorum.election import ElectionState

FILE_NAME: Final = "quorum-state"


class ElectionFile:
    """The file; reads and writes block."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / FILE_NAME

    def read(self) -> ElectionState | None:
        """What was written last; None before the first election."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return None
        try:
            if size > QUORUM_FILE_BYTES_MAX:
                raise ValueError(f"{size} bytes")
            return ElectionState.from_json(self._path.read_text(encoding="utf-8"))
        except (ValueError, KeyError) as error:
            raise StorageError(f"{self._path} is not a valid quorum state: {error}") from error

    def write(self, state: ElectionState) -> None:
        self._files.replace(str(self._path), state.to_json().encode())
