"""The file system as the log uses it: in one object, to count descriptors and to inject faults.

Descriptors are closed by reference counting. A user of a file keeps its ``Descriptor``; the table
may drop it at any time, and the file is closed when the last user releases it. So an executor
thread can finish a read while the event loop rolls, evicts or deletes the segment.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.buffers import Buffer, room

# Linux accepts at most this many buffers in one call.
IOV_MAX: Final = 1024


class WouldBlock(Exception):  # noqa: N818 — a signal like BlockingIOError's, not a failure
    """The bytes are not in memory: repeat the call with ``block=True`` on an executor's thread."""


class Replaced(Exception):  # noqa: N818 — a signal, too
    """A cleaned copy has replaced a segment: its file names now refer to other files."""


class Descriptor:
    """An open file; closes itself when it is no longer referenced."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class Files:
    """Plain system calls, and a bounded table of open descriptors."""

    def __init__(self, open_files_max: int) -> None:
        self._open_files_max = min(open_files_max, _half_of_allowed())
        # Some file systems cannot report what is cached; on them every read may block.
        self._knows_cached = True
        self._table: OrderedDict[str, Descriptor] = OrderedDict()
        # The paths in the table by directory: topics with many partitions are deleted at once.
        self._under: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    # -- descriptors ---------------------------------------------------------------------------

    def descriptor(self, path: str) -> Descriptor:
        """The open file at ``path``, which must exist."""
        with self._lock:
            found = self._table.get(path)
            if found is not None:
                self._table.move_to_end(path)
                return found
            found = Descriptor(self.open(path, os.O_RDWR))
            self._table[path] = found
            self._under.setdefault(_parent(path), set()).add(path)
            if len(self._table) > self._open_files_max:
                self._drop(next(iter(self._table)))
            return found

    def _drop(self, path: str) -> None:
        if self._table.pop(path, None) is not None:
            directory = _parent(path)
            self._under[directory].discard(path)
            if not self._under[directory]:
                del self._under[directory]

    def forget(self, path: str) -> None:
        """Must be called before a path refers to another file, or none."""
        with self._lock:
            self._drop(path)

    def forget_under(self, directory: str) -> None:
        """Drop the files in a directory."""
        with self._lock:
            for path in tuple(self._under.get(directory, ())):
                self._drop(path)

    @property
    def open_files(self) -> int:
        return len(self._table)

    # -- calls ---------------------------------------------------------------------------------

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        return os.pwritev(descriptor.number, buffers, position)

    def preadv(self, descriptor: Descriptor, buffer: Buffer, position: int, *, block: bool) -> int:
        if not block and self._knows_cached:
            try:
                return os.preadv(descriptor.number, [buffer], position, os.RWF_NOWAIT)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise
                self._knows_cached = False
        return os.preadv(descriptor.number, [buffer], position)

    def fsync(self, descriptor: Descriptor) -> None:
        os.fsync(descriptor.number)

    def truncate(self, path: str, size: int) -> None:
        os.truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, or a directory with its contents.

        Under the lock: a descriptor that a thread opened meanwhile would stay in the table, and its
        file on the disk.
        """
        with self._lock:
            os.replace(source, target)  # noqa: PTH105 — paths are plain text here
            for path in (source, target, *self._under.get(source, ())):
                self._drop(path)

    def remove(self, path: str) -> None:
        with self._lock:
            Path(path).unlink(missing_ok=True)
            self._drop(path)

    # -- composed operations -------------------------------------------------------------------

    def create(self, path: str) -> None:
        """An empty file, replacing any existing one."""
        self.forget(path)
        os.close(self.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC))

    def write_all(self, path: str, buffers: list[Buffer], position: int) -> None:
        """Write everything at ``position`` or raise."""
        descriptor = self.descriptor(path)
        total = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
        written = self.pwritev(descriptor, buffers[:IOV_MAX], position)
        while written < total:
            rest = _after(buffers, written)
            count = self.pwritev(descriptor, rest[:IOV_MAX], position + written)
            if count == 0:
                raise OSError(f"no progress while writing {path}")
            written += count

    def read(self, path: str, position: int, size: int, *, block: bool = True) -> memoryview:
        """Up to ``size`` bytes; fewer at the end of the file or, if non-blocking, of what is
        cached."""
        descriptor = self.descriptor(path)
        buffer = memoryview(room(size))
        done = 0
        while done < size:
            try:
                count = self.preadv(descriptor, buffer[done:], position + done, block=block)
            except BlockingIOError:
                if done:
                    break
                raise WouldBlock from None
            done += count
            if count == 0 or not block:
                break
        return buffer[:done]

    def set_modified(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def sync(self, path: str) -> None:
        """Make a file durable; a deleted one is ignored."""
        try:
            self.fsync(self.descriptor(path))
        except FileNotFoundError:
            return

    def sync_directory(self, path: str) -> None:
        self.fsync(Descriptor(self.open(path, os.O_RDONLY | os.O_DIRECTORY)))

    def replace(self, path: str, content: bytes, *, sync: bool = True) -> None:
        """Replace a whole file: a reader or a crash sees the old or the new one, never a mix."""
        temporary = path + ".tmp"
        descriptor = Descriptor(self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        done = 0
        while done < len(content):
            done += self.pwritev(descriptor, [content[done:]], done)
        if sync:
            self.fsync(descriptor)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(str(Path(path).parent))

    def read_small(self, path: str, bytes_max: int) -> bytes | None:
        """A whole file; None if there is none. OSError if it is too large."""
        try:
            descriptor = Descriptor(self.open(path, os.O_RDONLY))
        except FileNotFoundError:
            return None
        size = os.fstat(descriptor.number).st_size
        if size > bytes_max:
            raise OSError(errno.EFBIG, f"larger than {bytes_max} bytes", path)
        buffer = bytearray(size)
        done = 0
        while done < size:
            count = self.preadv(descriptor, memoryview(buffer)[done:], done, block=True)
            if count == 0:
                break
            done += count
        return bytes(buffer[:done])


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _half_of_allowed() -> int:
    """Half of the files that the process may open; the other half is for connections."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if allowed == resource.RLIM_INFINITY else max(allowed // 2, 1)


def _after(buffers: list[Buffer], count: int) -> list[Buffer]:
    """What is left of ``buffers`` after their first ``count`` bytes."""
    rest: list[Buffer] = []
    for buffer in buffers:
        if count < len(buffer):
            rest.append(memoryview(buffer)[count:] if count else buffer)
        count = max(0, count - len(buffer))
    return rest


def storage_error(what: str, error: OSError, *, ambiguous: bool = False) -> KafkaError:
    """``ambiguous`` if the contents of the disk are now unknown."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error}", ambiguous=ambiguous)
