"""A disk that may be full."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from skylog.log.files import Descriptor, Files
from skylog.wire.buffers import Buffer


class SimFiles(Files):
    """``is_full`` is asked before every write; of the last one a part is written."""

    def __init__(self, open_files_max: int, is_full: Callable[[], bool]) -> None:
        super().__init__(open_files_max)
        self._is_full = is_full

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        if self._is_full():
            first = memoryview(buffers[0]).cast("B")
            super().pwritev(descriptor, [first[: len(first) // 2]], position)
            raise _full()
        return super().pwritev(descriptor, buffers, position)

    def create(self, path: str) -> None:
        if self._is_full():
            raise _full()
        super().create(path)


def _full() -> OSError:
    return OSError(errno.ENOSPC, "the disk is full")
