"""Objects as files in a directory: durable when ``put`` returns, complete or absent after a crash.

A put writes a new file, syncs it, renames it to its key and syncs the directory. Every step down
from the root opens one segment without following links, so neither a key nor a link leads out of
the directory. Several processes may share a directory. The folders that objects were put into stay
open, so that puts and gets do not spend most of their time walking paths.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.errors import StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.limits import OBJECT_FOLDERS_KEPT_MAX, OBJECT_TEMPORARY_AGE_MS_MAX
from skylog.kernel.rng import Random, system_random
from skylog.objects.files import Entry, Files
from skylog.objects.keys import ObjectKey, checked_prefix, known
from skylog.objects.store import (
    AtHand,
    Exists,
    NotFound,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
    Source,
    check_range,
    parts_of,
    size_of,
)

T = TypeVar("T")

TEMPORARY: Final = ".tmp"
_NAME_MAX: Final = 255
# Ends the first half of a name that is cut; no key has this character.
_CONTINUED: Final = "~"
_REFUSED: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EISDIR}


class LocalStore(ObjectStore, AtHand):
    """A directory of objects. The caller owns the executor, and may stop it in ``on_close``."""

    def __init__(
        self,
        root: Path,
        executor: Executor,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        files: Files | None = None,
        inline_bytes_max: int = 0,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        """``inline_bytes_max``: smaller puts run on the event loop, if they are not synced."""
        self._executor = executor
        # Runs ``put_file``, which takes so long that reads should not wait for it.
        self.copies = executor
        self._inline_bytes_max = inline_bytes_max
        self._on_close = on_close
        self._rng = rng or system_random()
        self._files = files or Files()
        self._synced: set[tuple[int, int]] = set()  # directories whose names are on disk
        self._kept: dict[str, int] = {}  # open folders whose names are on disk
        self._retired: list[int] = []  # folders of roots that were removed; threads may hold them
        self._reopening = Lock()
        self._path = root
        try:
            self._make_root(root)
            self._root = self._files.open_root(root)
            (root / TEMPORARY).mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise StorageError(f"cannot use {root} for objects: {error.strerror}") from error
        self._sweep((clock or SystemClock()).now_ms() - OBJECT_TEMPORARY_AGE_MS_MAX)

    @property
    def at_hand(self) -> AtHand:
        return self

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        await self._run(key, partial(self._put, key, data, if_absent))

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        def write(folder: int, name: str) -> None:
            self._files.copy_new(folder, name, source, size)

        await self.copies.run(partial(_guarded, key, partial(self._put_new, key, write)))

    def put_now(self, key: ObjectKey, data: Payload) -> bool:
        if size_of(data) >= self._inline_bytes_max:
            return False
        try:
            self._put(key, data, if_absent=False)
        except (OSError, ObjectError):
            return False  # ``put`` reports the error
        return True

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        return await self._run(key, lambda: self._get(key, start, end))

    def get_now(self, key: ObjectKey, start: int, end: int) -> bytearray | None:
        """Only from the page cache: copying is then faster than using a thread."""
        if not self._files.knows_cached:
            return None
        try:
            with self._opened(key) as (file, size, _):
                first, stop = check_range(key, start, end, size)
                return self._files.read_cached(file, first, stop - first)
        except (OSError, ObjectError):
            return None  # ``get`` reports the error

    async def head(self, key: ObjectKey) -> ObjectInfo:
        return await self._run(key, lambda: self._head(key))

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        by_folder: dict[tuple[str, ...], list[str]] = {}
        for key in keys:
            *folder, name = _on_disk(key)
            by_folder.setdefault(tuple(folder), []).append(name)
        for path, names in by_folder.items():
            await self._run("/".join(path), partial(self._delete, path, names))

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        pending = deque[str | ObjectInfo]([checked_prefix(prefix)])
        while pending:
            found = pending.pop()
            if isinstance(found, ObjectInfo):
                if after is None or found.key.text > after:
                    yield found
            elif not _all_before(found, after):
                pending.extend(reversed(await self._run(found, partial(self._entries, found))))

    async def close(self) -> None:
        root, self._root = self._root, -1
        if root < 0:
            return
        if self._on_close:
            self._on_close()
        kept, self._kept = self._kept, {}
        for folder in (root, *kept.values(), *self._retired):
            self._files.close(folder)

    async def _run(self, what: ObjectKey | str, work: Callable[[], T]) -> T:
        return await self._executor.run(partial(_guarded, what, work))

    def _put(self, key: ObjectKey, data: Payload, if_absent: bool) -> None:
        def write(folder: int, name: str) -> None:
            self._files.write_new(folder, name, parts_of(data))

        if not self._put_new(key, write, if_absent=if_absent):
            self._same(key, data)

    def _put_new(
        self, key: ObjectKey, write: Callable[[int, str], None], *, if_absent: bool = False
    ) -> bool:
        """Write a file and give it its name; False if the name is taken."""
        *path, name = _on_disk(key)
        scratch = self._rng.randbytes(16).hex()
        placed = False
        writing = self._folder_to_write
        with writing((TEMPORARY,)) as temporary, writing(path) as folder:
            try:
                write(temporary, scratch)
                placed = self._place(temporary, scratch, folder, name, if_absent)
            finally:
                if if_absent or not placed:  # else it was renamed
                    with suppress(OSError):
                        self._files.remove(temporary, scratch)
        return placed

    @contextmanager
    def _folder_to_write(self, path: Sequence[str]) -> Iterator[int]:
        """The directory at ``path``, created if missing and kept open for the next put."""
        where = "/".join(path)
        folder = self._kept.get(where)
        if folder is not None and self._files.is_linked(folder):
            yield folder
            return
        with self._folder(path, make=True) as folder:
            yield folder
            if len(self._kept) < OBJECT_FOLDERS_KEPT_MAX and where not in self._kept:
                # If two come at once the first is kept: it may be in use.
                kept = self._files.copy(folder)
                if self._kept.setdefault(where, kept) != kept:
                    self._files.close(kept)

    def _place(self, source: int, scratch: str, folder: int, name: str, if_absent: bool) -> bool:
        """Give the file its name, unless it is taken; from here on a failure is ambiguous."""
        try:
            if if_absent:
                self._files.link(source, scratch, folder, name)
            else:
                self._files.rename(source, scratch, folder, name)
        except FileExistsError:
            return False
        except OSError as error:
            kind = Outcome.REFUSED if error.errno in _REFUSED else Outcome.AMBIGUOUS
            raise ObjectError(f"{name}: {error.strerror}", kind) from error
        try:
            self._files.sync(folder)
        except OSError as error:
            raise ObjectError(f"{name}: {error.strerror}", Outcome.AMBIGUOUS) from error
        return True

    def _same(self, key: ObjectKey, data: Payload) -> None:
        """Compare; the writer of the existing object may have died before its sync."""
        held = self._head(key).size == size_of(data) and self._get(key, 0, None)
        if held != b"".join(parts_of(data)):
            raise Exists(f"{key} has other contents")
        with self._folder(_on_disk(key)[:-1]) as folder:
            self._files.sync(folder)

    def _get(self, key: ObjectKey, start: int, end: int | None) -> bytes:
        with self._opened(key) as (file, size, _):
            first, stop = check_range(key, start, end, size)
            data = self._files.read(file, first, stop - first)
        if len(data) != stop - first:
            raise ObjectError(f"{key} ended at {first + len(data)} of {stop}", Outcome.NOT_DONE)
        return data

    def _head(self, key: ObjectKey) -> ObjectInfo:
        with self._opened(key) as (_, size, modified_ms):
            return ObjectInfo(key, size, modified_ms)

    def _delete(self, path: Sequence[str], names: Sequence[str]) -> None:
        try:
            with self._folder(path) as folder:
                for name in names:
                    with suppress(FileNotFoundError):
                        self._files.remove(folder, name)
                self._files.sync(folder)
        except FileNotFoundError:
            return  # no such directory: none of the objects is there

    def _entries(self, where: str) -> Sequence[str | ObjectInfo]:
        """The entries of a directory in key order: objects, and directories with a slash."""
        try:
            with self._folder(_names(where)[:-1]) as folder:
                entries = list(self._whole_names(folder, self._files.entries(folder)))
        except FileNotFoundError:
            return []
        found: dict[str, str | ObjectInfo] = {}
        for name, size, modified_ms in entries:
            text = where + name
            if size is None:
                found[text + "/"] = text + "/"
            elif key := known(text):
                found[text] = ObjectInfo(key, size, modified_ms)
        return [found[text] for text in sorted(found)]

    def _whole_names(self, folder: int, entries: Sequence[Entry]) -> Iterator[Entry]:
        """What ``_names`` has cut, put together."""
        for name, size, modified_ms in entries:
            if size is not None or not name.endswith(_CONTINUED):
                yield name, size, modified_ms
                continue
            rest = self._files.open_folder(folder, name)
            try:
                for more, length, changed_ms in self._files.entries(rest):
                    yield name.removesuffix(_CONTINUED) + more, length, changed_ms
            finally:
                self._files.close(rest)

    def _make_root(self, root: Path) -> None:
        missing = [folder for folder in (root, *root.parents) if not folder.exists()]
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in missing:
            parent = self._files.open_root(folder.parent)
            self._files.sync(parent)
            self._files.close(parent)

    def _sweep(self, before_ms: int) -> None:
        """Remove the temporary files of unfinished puts."""
        with self._folder((TEMPORARY,)) as temporary:
            for name, size, modified_ms in self._files.entries(temporary):
                if size is not None and modified_ms < before_ms:
                    with suppress(OSError):
                        self._files.remove(temporary, name)

    @contextmanager
    def _folder(self, path: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """The directory at ``path``, opened segment by segment from the root."""
        if not self._files.is_linked(self._root):
            self._reopen()
        folder = self._files.copy(self._root)
        try:
            for segment in path:
                below = self._step(folder, segment, make)
                self._files.close(folder)
                folder = below
            yield folder
        finally:
            self._files.close(folder)

    def _reopen(self) -> None:
        """Continue in the directory that has replaced our removed one. It is not created here: it
        may be a file system that is not mounted yet."""
        with self._reopening:
            if self._files.is_linked(self._root):
                return  # another thread was first
            root = self._files.open_root(self._path)
            self._retired += (self._root, *self._kept.values())
            self._root, self._kept = root, {}
            self._synced.clear()

    def _step(self, folder: int, segment: str, make: bool) -> int:
        try:
            below = self._files.open_folder(folder, segment)
        except FileNotFoundError:
            if not make:
                raise
            self._files.make_folder(folder, segment)
            below = self._files.open_folder(folder, segment)
        try:
            if make:
                self._sync_name(folder, below)
        except OSError:
            self._files.close(below)
            raise
        return below

    def _sync_name(self, folder: int, below: int) -> None:
        """Sync a directory's name once. It may exist without being on disk, if its creator has not
        synced it yet."""
        found = os.fstat(below)
        if (found.st_dev, found.st_ino) not in self._synced:
            self._files.sync(folder)
            self._synced.add((found.st_dev, found.st_ino))

    @contextmanager
    def _opened(self, key: ObjectKey) -> Iterator[tuple[int, int, int]]:
        """File, size and time of a stored object."""
        *path, name = _on_disk(key)
        file = self._open(path, name)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise ObjectError(f"{key} is not a file", Outcome.REFUSED)
            yield file, found.st_size, found.st_mtime_ns // 1_000_000
        finally:
            self._files.close(file)

    def _open(self, path: Sequence[str], name: str) -> int:
        kept = self._kept.get("/".join(path))
        if kept is not None:
            with suppress(FileNotFoundError):  # perhaps in a folder that has replaced it
                return self._files.open_file(kept, name)
        with self._folder(path) as folder:
            return self._files.open_file(folder, name)


def _guarded(what: ObjectKey | str, work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise failure(what, error) from error


def failure(what: ObjectKey | str, error: OSError) -> ObjectError:
    """The error for a failed system call before any rename."""
    if isinstance(error, FileNotFoundError):
        return NotFound(f"{what} does not exist")
    kind = Outcome.REFUSED if error.errno in _REFUSED else Outcome.NOT_DONE
    return ObjectError(f"{what}: {error.strerror}", kind)


def _on_disk(key: ObjectKey) -> list[str]:
    """The path of a key, parsed again: rejects keys that were not created by ``parse``."""
    return _names(ObjectKey.parse(key.text).text)


def _names(text: str) -> list[str]:
    """The names of a path. One that no file system takes is cut: a topic's name may have 249
    characters, and an id behind it."""
    names = []
    for name in text.split("/"):
        if len(name) > _NAME_MAX:
            names.append(name[: _NAME_MAX - 1] + _CONTINUED)
            names.append(name[_NAME_MAX - 1 :])
        else:
            names.append(name)
    return names


def _all_before(folder: str, after: str | None) -> bool:
    """Whether every key of a directory sorts at or before ``after``."""
    return after is not None and folder <= after and not after.startswith(folder)
