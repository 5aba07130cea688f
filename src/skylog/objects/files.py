"""The system calls of the local store, one method each, so that a test can make any of them fail.

Names are single path segments, always relative to an open directory, and links are not followed.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from skylog.objects.sources import unreadable, wrong_size
from skylog.objects.store import CheckedFile, Source
from skylog.wire.buffers import room

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a pipe in the directory must not block a thread.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# The limit of one writev call (IOV_MAX on Linux).
_PARTS_PER_WRITE: Final = 1024
# Measured: on a virtual machine, writes of megabytes cost several times as much CPU. The kernel
# seems to use large pages for them, which are rarely available.
_BYTES_PER_WRITE: Final = 256 * 1024
_BYTES_PER_COPY: Final = 64 * 1024 * 1024
# File systems between which, or on which, the kernel does not copy.
_NOT_IN_KERNEL: Final = frozenset({errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
# Name, size (None: a directory) and time of change.
Entry: TypeAlias = tuple[str, int | None, int]


class Files:
    """The real system calls."""

    # Some file systems, including network ones, cannot report what is cached. Of such a system, a
    # caller that must not wait opens at most one file.
    knows_cached = True

    def open_root(self, root: Path) -> int:
        return os.open(root, _FOLDER)

    def copy(self, folder: int) -> int:
        return os.dup(folder)

    def open_folder(self, folder: int, name: str) -> int:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)

    def is_linked(self, folder: int) -> bool:
        """Whether an open directory still has a name: it may have been removed."""
        return os.fstat(folder).st_nlink > 0

    def make_folder(self, folder: int, name: str) -> None:
        with suppress(FileExistsError):  # created concurrently
            os.mkdir(name, 0o700, dir_fd=folder)

    def open_file(self, folder: int, name: str) -> int:
        return os.open(name, _READ, dir_fd=folder)

    def write_new(self, folder: int, name: str, parts: Sequence[memoryview]) -> None:
        """Write a file that did not exist and sync it."""
        file = os.open(name, _NEW, 0o600, dir_fd=folder)
        try:
            self.write(file, [part for part in parts if part])
            self.sync(file)
        finally:
            self.close(file)

    def write(self, file: int, parts: list[memoryview]) -> None:
        waiting = deque(parts)
        while waiting:
            written = os.writev(file, _next_parts(waiting))
            while waiting and written >= waiting[0].nbytes:
                written -= waiting.popleft().nbytes
            if written:
                waiting[0] = waiting[0][written:]

    def copy_new(self, folder: int, name: str, source: Source, size: int) -> None:
        """Copy files and buffers into one that did not exist, check its size and sync it."""
        file = os.open(name, _NEW, 0o600, dir_fd=folder)
        try:
            for part in source:
                if isinstance(part, Path):
                    self.copy_file(part, file)
                elif isinstance(part, CheckedFile):
                    self.copy_checked(part, file, folder, name)
                else:
                    self.write(file, [view for view in [memoryview(part).cast("B")] if view])
            copied = os.fstat(file).st_size
            if copied != size:
                raise wrong_size(size, str(copied))
            self.sync(file)
        finally:
            self.close(file)

    def copy_checked(self, source: CheckedFile, target: int, folder: int, name: str) -> None:
        """Append a file, and check what has become of it: to copy within the kernel and to read is
        far cheaper than to write."""
        begin = os.fstat(target).st_size
        self.copy_file(source.path, target)
        check, written = source.check(), os.open(name, _READ, dir_fd=folder)
        try:
            while piece := os.pread(written, _BYTES_PER_WRITE, begin):
                check.take(piece)
                begin += len(piece)
        finally:
            self.close(written)
        check.end()

    def copy_file(self, source: Path, target: int) -> None:
        """Append a file, within the kernel where the file systems can."""
        try:
            file = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(source, error) from error
        try:
            while self._copy_some(file, target):
                pass
        finally:
            self.close(file)

    def _copy_some(self, file: int, target: int) -> int:
        try:
            return os.copy_file_range(file, target, _BYTES_PER_COPY)
        except OSError as error:
            if error.errno not in _NOT_IN_KERNEL:
                raise
        data = os.read(file, _BYTES_PER_WRITE)
        self.write(target, [memoryview(data)] if data else [])
        return len(data)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        os.link(name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)

    def remove(self, folder: int, name: str) -> None:
        os.unlink(name, dir_fd=folder)

    def read(self, file: int, start: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer only if the file is shorter."""
        data = os.pread(file, size, start)
        while len(data) < size:
            more = os.pread(file, size - len(data), start + len(data))
            if not more:
                break
            data += more
        return data

    def read_cached(self, file: int, start: int, size: int) -> bytearray | None:
        """All ``size`` bytes, if all of them are in the page cache."""
        data = room(size)
        try:
            read = os.preadv(file, [data], start, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            self.knows_cached = False
            return None
        return data if read == size else None

    def entries(self, folder: int) -> list[Entry]:
        """Name, size and time of files; a directory has no size. Links etc. are left out."""
        found: list[Entry] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name, None, 0))
                elif entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # gone since the directory was read
                        about = entry.stat(follow_symlinks=False)
                        found.append((entry.name, about.st_size, about.st_mtime_ns // 1_000_000))
        return found

    def close(self, file: int) -> None:
        os.close(file)


def _next_parts(waiting: Iterable[memoryview]) -> list[memoryview]:
    """What the next call writes, from parts that are not empty."""
    chosen: list[memoryview] = []
    left = _BYTES_PER_WRITE
    for part in islice(waiting, _PARTS_PER_WRITE):
        chosen.append(part[:left])
        left -= part.nbytes
        if left <= 0:
            break
    return chosen


class UnsyncedFiles(Files):
    """Leaves syncing to the operating system, as Kafka's logs do."""

    def sync(self, file: int) -> None:
        pass
