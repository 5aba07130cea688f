"""Indexes of remote segments, kept on a disk in the files that Kafka's index cache has.

``remote-log-index-cache/<start offset>_<segment id>.index|.timeindex|.txnindex``. The directory is
bounded by bytes and by idle time, and it is only a cache: a file that is in doubt is removed and
fetched again. A few indexes are in memory, too. Each is fetched once, however many wait for it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import REMOTE_INDEX_MEMORY_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.log.names import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from skylog.objects.store import NotFound
from skylog.tiered.reading.tables import (
    AbortedTable,
    DamagedIndexError,
    OffsetTable,
    Table,
    TimeTable,
    open_table,
    stored_size_max,
)
from skylog.tiered.segments import IndexType

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.tiered.ports import RemoteStorage
    from skylog.tiered.segments import RemoteSegment
    from skylog.wire.buffers import Buffer

_log = get_logger("tiered.indexes")

DIRECTORY: Final = "remote-log-index-cache"
_SUFFIXES: Final = {
    IndexType.OFFSET: INDEX_SUFFIX,
    IndexType.TIMESTAMP: TIME_INDEX_SUFFIX,
    IndexType.TRANSACTION: TXN_INDEX_SUFFIX,
}
_NAME: Final = re.compile(r"\d{1,19}_[A-Za-z0-9_-]{22}\.(index|timeindex|txnindex)")
_TEMPORARY: Final = ".tmp"
# Checking so much takes less than a millisecond.
_CHECKED_BYTES: Final = 16 * 1024

_Key: TypeAlias = tuple[Uuid, IndexType]


@dataclass(slots=True)
class _Stored:
    size: int
    used_at: float


class IndexCache:
    """All calls come from the event loop; files are read and written by the executor."""

    def __init__(
        self,
        directory: Path,
        storage: RemoteStorage,
        system: System,
        *,
        bytes_max: int,
        idle_ms_max: int,
    ) -> None:
        """``idle_ms_max`` is -1 for no limit."""
        self._directory = directory
        self._storage = storage
        self._system = system
        self.bytes_max = bytes_max
        self.idle_ms_max = idle_ms_max
        self._stored: OrderedDict[str, _Stored] = OrderedDict()
        self.stored_bytes = 0
        self._loaded: OrderedDict[_Key, Table] = OrderedDict()
        self._loaded_bytes = 0
        self._under_way: dict[_Key, asyncio.Task[Table | None]] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.fetched = 0
        self._look()

    def _look(self) -> None:
        """Adopt what an earlier run left, oldest first, and remove anything else."""
        now = self._system.clock.monotonic()
        found: list[tuple[int, str, int]] = []
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    if not entry.is_file(follow_symlinks=False):
                        continue
                    if not _NAME.fullmatch(entry.name):
                        Path(entry.path).unlink(missing_ok=True)
                        continue
                    about = entry.stat(follow_symlinks=False)
                    found.append((about.st_mtime_ns, entry.name, about.st_size))
        except OSError as error:
            raise StorageError(f"cannot use {self._directory}: {error.strerror}") from error
        for _, name, size in sorted(found):
            self._stored[name] = _Stored(size, now)
            self.stored_bytes += size

    # -- reading -------------------------------------------------------------------------------

    def now(self, segment: RemoteSegment, kind: IndexType) -> Table | None:
        """The index, if it is in memory."""
        key = (segment.id, kind)
        table = self._loaded.get(key)
        if table is not None:
            self._loaded.move_to_end(key)
            self._use(_name(segment, kind))
        return table

    async def get(self, segment: RemoteSegment, kind: IndexType) -> Table | None:
        """The index; None if the store has none that is sound. ObjectError if it has none."""
        key = (segment.id, kind)
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.ensure_future(self._load(segment, kind))
            self._under_way[key] = task
            task.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(task)

    def _ended(self, key: _Key, task: asyncio.Task[Table | None]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waited for it has got it; perhaps nobody has

    async def _load(self, segment: RemoteSegment, kind: IndexType) -> Table | None:
        table = await self._load_stored(segment, kind)
        for _ in range(2):
            if table is not None:
                break
            table = await self._fetch(segment, kind)
        if table is not None:
            self._remember((segment.id, kind), table)
        return table

    async def _load_stored(self, segment: RemoteSegment, kind: IndexType) -> Table | None:
        name = _name(segment, kind)
        if name not in self._stored:
            return None
        size_max = stored_size_max(segment, kind)
        try:
            data = await self._system.executor.run(partial(self._read, name, size_max))
            table = await self._opened(segment, kind, data)
        except (OSError, DamagedIndexError) as error:
            _log.warning("index removed from the cache", name=name, why=str(error))
            self._remove(name)
            return None
        self._use(name)
        return table

    async def _fetch(self, segment: RemoteSegment, kind: IndexType) -> Table | None:
        self.fetched += 1
        try:
            data = await self._storage.fetch_index(segment, kind)
        except NotFound:
            if kind is not IndexType.TRANSACTION:
                raise
            return AbortedTable(segment, b"")
        try:
            table = await self._opened(segment, kind, data)
        except DamagedIndexError as error:
            _log.error(
                "damaged index",
                topic=segment.topic,
                partition=segment.partition.partition_index,
                segment=str(segment.id),
                kind=kind.value,
                why=str(error),
            )
            return None
        self._store(_name(segment, kind), bytes(data))
        return table

    async def _opened(self, segment: RemoteSegment, kind: IndexType, data: Buffer) -> Table:
        """Every entry is checked: of a large index, on a thread."""
        check = partial(open_table, segment, kind, data)
        return check() if len(data) <= _CHECKED_BYTES else await self._system.executor.run(check)

    # -- keeping -------------------------------------------------------------------------------

    def keep(self, segment: RemoteSegment, offsets: OffsetTable, times: TimeTable) -> None:
        """Indexes that were rebuilt from the segment replace those of the store."""
        self._remember((segment.id, IndexType.OFFSET), offsets)
        self._remember((segment.id, IndexType.TIMESTAMP), times)
        for kind in (IndexType.OFFSET, IndexType.TIMESTAMP):
            self._remove(_name(segment, kind))

    def forget(self, segment: RemoteSegment) -> None:
        """The segment is deleted."""
        for kind in _SUFFIXES:
            self._unload((segment.id, kind))
            self._remove(_name(segment, kind))

    def _remember(self, key: _Key, table: Table) -> None:
        self._unload(key)
        self._loaded[key] = table
        self._loaded_bytes += table.size
        while self._loaded_bytes > REMOTE_INDEX_MEMORY_BYTES_MAX and len(self._loaded) > 1:
            self._unload(next(iter(self._loaded)))
        self._watch()

    def _unload(self, key: _Key) -> None:
        gone = self._loaded.pop(key, None)
        if gone is not None:
            self._loaded_bytes -= gone.size

    def _use(self, name: str) -> None:
        stored = self._stored.get(name)
        if stored is not None:
            stored.used_at = self._system.clock.monotonic()
            self._stored.move_to_end(name)

    def _store(self, name: str, data: bytes) -> None:
        """On disk in the background: the reader has it already."""
        if len(data) > self.bytes_max or name in self._stored:
            return
        self._stored[name] = _Stored(len(data), self._system.clock.monotonic())
        self.stored_bytes += len(data)
        self._background(partial(self._write, name, data), name)
        self._trim()

    def resize(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._trim()

    def _trim(self) -> None:
        while self.stored_bytes > self.bytes_max and self._stored:
            self._remove(next(iter(self._stored)))

    def _remove(self, name: str) -> None:
        stored = self._stored.pop(name, None)
        if stored is not None:
            self.stored_bytes -= stored.size
            self._background(partial(self._unlink, name), "")

    def _background(self, work: partial[None], name: str) -> None:
        task = asyncio.ensure_future(self._run(work, name))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _run(self, work: partial[None], name: str) -> None:
        try:
            await self._system.executor.run(work)
        except OSError as error:
            _log.warning("index not kept on disk", name=name, why=str(error))
            if name:
                self._remove(name)
        else:
            # It may have been removed while it was written.
            if name and name not in self._stored:
                with suppress(OSError):
                    await self._system.executor.run(partial(self._unlink, name))

    # -- idle ones -----------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._timer is None and self.idle_ms_max >= 0:
            seconds = max(self.idle_ms_max / 1000, 1.0)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        before = self._system.clock.monotonic() - self.idle_ms_max / 1000
        for name, stored in tuple(self._stored.items()):
            if stored.used_at > before:
                break
            self._remove(name)
        for key in tuple(self._loaded):
            self._unload(key)  # those in use are read from the disk again
        if self._stored:
            self._watch()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await end_tasks(self._under_way.values())
        if self._writes:
            await asyncio.wait(tuple(self._writes))

    # -- on the executor -----------------------------------------------------------------------

    def _read(self, name: str, size_max: int) -> bytes:
        with (self._directory / name).open("rb") as file:
            data = file.read(size_max + 1)
        if len(data) > size_max:
            raise DamagedIndexError(f"more than {size_max} bytes")
        return data

    def _write(self, name: str, data: bytes) -> None:
        """Complete or absent after a crash: of a cut list of aborted transactions, none would
        know."""
        temporary = self._directory / (name + _TEMPORARY)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._directory / name)

    def _unlink(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


def _name(segment: RemoteSegment, kind: IndexType) -> str:
    return f"{segment.start_offset}_{segment.id}{_SUFFIXES[kind]}"
