"""The lock on a log directory: one broker at a time, Kafka's own included."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from skylog.kernel.errors import StorageError
from skylog.log.checkpoints import LOCK

# File locks only work between processes; this one is for brokers within this process.
_held: Final[set[str]] = set()


class DirectoryLock:
    """Held from creation until ``release``."""

    def __init__(self, directory: str) -> None:
        self._path = str(Path(directory).resolve())
        self._descriptor = -1
        if self._path in _held:
            self._refuse()
        self._descriptor = os.open(
            f"{self._path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            self._refuse()
        _held.add(self._path)

    def _refuse(self) -> None:
        raise StorageError(
            f"{self._path} is in use by another broker (its file {LOCK} is locked): "
            "stop that broker, or give this one its own directory"
        )

    def release(self) -> None:
        os.close(self._descriptor)
        _held.discard(self._path)
