"""Puts the batches of diskless partitions together into segments, a few seconds behind their end.

A commit queues its partition. Every few seconds a *round* asks once where the new batches of all
queued partitions are, and reads their WAL objects one after another, each once for all partitions
(``plan.steps``). What was read is appended to files on a thread. Segments that are cut are copied
by the manager like those of classic topics; their files go when they are remote. A partition where
nothing happens is in no queue; only ``segment.ms`` of an open segment is on the agenda.

Nobody waits for any of this. Whatever fails is read again from the WAL, which is pruned only below
what is remote.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.kernel.waiting import end_tasks
from skylog.log.names import directory_name
from skylog.tiered.agenda import Agenda
from skylog.tiered.consolidation import plan
from skylog.tiered.consolidation.assembly import Assembly
from skylog.tiered.consolidation.leftovers import remove, remove_leftovers
from skylog.tiered.consolidation.taking import Taker

if TYPE_CHECKING:
    from pathlib import Path

    from skylog.kernel.system import System
    from skylog.log.config import LogConfig
    from skylog.log.files import Files
    from skylog.tiered.consolidation.assembly import Appended, AssemblyOwner, ClosedPart
    from skylog.tiered.consolidation.taking import Step
    from skylog.tiered.consolidation.wal import Found, Wal
    from skylog.tiered.segments import TopicIdPartition

_log = get_logger("tiered.consolidation")

RETRY_SECONDS: Final = 1.0
RETRY_SECONDS_MAX: Final = 30.0
# After an error of the disk.
DISK_RETRY_SECONDS: Final = 10.0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
TOPIC_LENGTH_MAX: Final = 200
# A partition that is being created, or whose coordinator moves.
PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_NOT_THERE: Final = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)


@dataclass(frozen=True, slots=True)
class AssemblerSettings:
    # What is read at once may be over.
    disk_bytes_max: int
    # Rounds begin this far apart, unless there is more to read.
    interval_ms: int


@dataclass(slots=True)
class AssemblerStats:
    """Totals; ``disk_errors`` and ``spoiled`` need an operator's attention."""

    bytes: int = 0
    segments: int = 0
    cut_early: int = 0
    disk_errors: int = 0
    # Segments whose file was not what had been written.
    spoiled: int = 0


class Assembler:
    """All calls come from the event loop."""

    def __init__(
        self, directory: Path, wal: Wal, files: Files, system: System, settings: AssemblerSettings
    ) -> None:
        self._directory = directory
        self._taker = Taker(wal, files, system.executor)
        self._files = files
        self._executor = system.executor
        self._clock = system.clock
        self._settings = settings
        self.stats = AssemblerStats()
        # One run: what was read at once, appended.
        self.stage = Stage(system.clock)
        self._all: dict[Assembly, None] = {}
        self._begun = 0
        # Those that may have something to take, in the order of their turns.
        self._moved: dict[Assembly, None] = {}
        self._cuts: dict[Assembly, None] = {}
        self._removals: list[str] = []
        self._agenda: Agenda[Assembly] = Agenda()
        self._work = asyncio.Event()
        self._round_at = 0.0
        self._task: asyncio.Task[None] | None = None
        # Bytes on the disk, of open and closed segments.
        self.used_bytes = 0

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """What is here is dropped by the next start."""
        if self._task is not None:
            await end_tasks([self._task])

    def reconfigure(self, settings: AssemblerSettings) -> None:
        self._settings = settings
        self._work.set()

    # -- partitions ----------------------------------------------------------------------------

    def begin(
        self,
        owner: AssemblyOwner,
        partition: TopicIdPartition,
        topic: str,
        offset: int,
        config: LogConfig,
        *,
        after_seconds: float = 0.0,
    ) -> Assembly:
        """Put a partition together from ``offset`` on."""
        self._begun += 1
        name = directory_name(topic, partition.partition_index)
        # The number makes it unique; with the longest topic names it would be too long.
        short = directory_name(topic[:TOPIC_LENGTH_MAX], partition.partition_index)
        directory = str(self._directory / f"{short}.{self._begun}")
        assembly = Assembly(owner, partition, name, directory, offset, config)
        self._all[assembly] = None
        if after_seconds:
            self._rest(assembly, after_seconds)
        return assembly

    def drop(self, assembly: Assembly) -> None:
        """This broker does not lead any more, or the assembly cannot go on."""
        assembly.is_dropped = True
        self._all.pop(assembly, None)
        self._moved.pop(assembly, None)
        self._cuts.pop(assembly, None)
        self._agenda.drop(assembly)
        self._removals.append(assembly.directory)
        self._count(assembly)
        self._work.set()

    def committed(self, assembly: Assembly, high_watermark: int) -> None:
        assembly.high_watermark = max(assembly.high_watermark, high_watermark)
        self._queue(assembly)

    def release(self, assembly: Assembly, covered_end: int) -> None:
        """What ends below is remote."""
        gone = assembly.release(covered_end)
        if gone:
            self._removals += gone
            self._count(assembly)
            self._work.set()
            self._queue(assembly)

    def configure(self, assembly: Assembly, config: LogConfig) -> None:
        assembly.config = config
        self._agenda.put(assembly, self._clock.monotonic())
        self._work.set()

    def _queue(self, assembly: Assembly) -> None:
        is_full = len(assembly.closed) >= plan.CLOSED_MAX
        rests = assembly.rests_until > self._clock.monotonic()
        if assembly.is_behind and not (is_full or rests or assembly.is_dropped):
            if not self._moved:
                self._work.set()
            self._moved[assembly] = None

    def _rest(self, assembly: Assembly, seconds: float) -> None:
        assembly.rests_until = self._clock.monotonic() + seconds
        self._moved.pop(assembly, None)
        self._agenda.put(assembly, assembly.rests_until)

    def _count(self, assembly: Assembly) -> int:
        """Count what an assembly has on the disk now; returns by how much that is more."""
        size = 0 if assembly.is_dropped else assembly.open_bytes + assembly.closed_bytes
        more = size - assembly.counted_bytes
        assembly.counted_bytes = size
        self.used_bytes += more
        return more

    # -- the task ------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._on_disk(partial(remove_leftovers, self._directory))
        while True:
            self._work.clear()
            try:
                await self.work()
            except Exception:  # noqa: BLE001 - whatever it is, the next turn may do better
                _log.exception("round failed")
                self._round_at = self._clock.monotonic() + RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._idle_seconds):
                    await self._work.wait()

    async def work(self) -> None:
        """Do all that is due now."""
        while True:
            now = self._clock.monotonic()
            for assembly in self._agenda.take_due(now):
                self._look(assembly)
            if not (self._removals or self._cuts or (self._moved and now >= self._round_at)):
                return
            await self._turn()

    @property
    def _idle_seconds(self) -> float | None:
        """Until something is due; None: not before something happens."""
        times = [self._agenda.next_at, self._round_at if self._moved else None]
        known = [at for at in times if at is not None]
        return max(min(known) - self._clock.monotonic(), 0) if known else None

    def _look(self, assembly: Assembly) -> None:
        """Its time has come: to be cut, or to be read again."""
        self._queue(assembly)
        due_ms = assembly.due_ms
        if due_ms is not None and due_ms <= self._clock.now_ms():
            self._cuts[assembly] = None
        else:
            self._set_alarm(assembly)

    def _set_alarm(self, assembly: Assembly) -> None:
        now, due_ms = self._clock.monotonic(), assembly.due_ms
        if due_ms is not None:
            self._agenda.put(assembly, now + max(due_ms - self._clock.now_ms(), 0) / 1000)
        if assembly.rests_until > now:
            self._agenda.put(assembly, assembly.rests_until)

    async def _turn(self) -> None:
        removals, self._removals = self._removals, []
        if removals:
            await self._on_disk(partial(remove, removals, self._files))
        cuts, self._cuts = list(self._cuts), {}
        await self._cut(cuts)
        now = self._clock.monotonic()
        if self._moved and now >= self._round_at:
            self._round_at = now + self._settings.interval_ms / 1000
            if self._has_room and await self._round():
                self._round_at = now
            await self._relieve()

    @property
    def _has_room(self) -> bool:
        return self.used_bytes < self._settings.disk_bytes_max

    async def _relieve(self) -> None:
        """Too much is on the disk: cut the largest, so that it is copied and goes."""
        sizes = ((one, one.open_bytes) for one in self._all)
        chosen = plan.to_cut(sizes, self.used_bytes, self._settings.disk_bytes_max)
        self.stats.cut_early += len(chosen)
        await self._cut(chosen)

    async def _on_disk(self, work: partial[None]) -> None:
        try:
            await self._executor.run(work)
        except OSError as error:
            self._disk_failed(error)

    def _disk_failed(self, error: Exception) -> None:
        self.stats.disk_errors += 1
        _log.error("segments not put together", directory=self._directory, why=str(error))

    # -- one round -----------------------------------------------------------------------------

    async def _round(self) -> bool:
        """Take what is new; True if there is more to take at once."""
        ones = list(self._moved)
        found = await self._taker.find(ones)
        usable = {one: result for one, result in found.items() if self._is_usable(one, result)}
        wanted = plan.whole_objects(usable)
        room = self._settings.disk_bytes_max - self.used_bytes
        is_taken = False
        for step in plan.steps(wanted, max(min(plan.STEP_BYTES, room), 1)):
            is_taken = self._has_room and await self._take(step)
            if not is_taken:
                break
        for one in ones:
            if not one.is_behind or len(one.closed) >= plan.CLOSED_MAX:
                self._moved.pop(one, None)
        return is_taken and bool(self._moved)

    def _is_usable(self, one: Assembly, found: Found) -> bool:
        if one.is_dropped:
            return False
        if found.error in _NOT_THERE:
            # Deleted meanwhile, or pruned: by then another leader's segments have it.
            one.owner.heard(found.log_start_offset, found.high_watermark)
            if not one.is_dropped:
                one.owner.lost(f"{found.error.name} at offset {one.position}")
        elif found.error is not ErrorCode.NONE:
            self._failed(one, KafkaError(found.error))
        else:
            one.high_watermark = max(one.high_watermark, found.high_watermark)
            one.owner.heard(found.log_start_offset, found.high_watermark)
            return bool(found.batches) and not one.is_dropped
        return False

    def _failed(self, one: Assembly, error: KafkaError) -> None:
        """Neither the plane nor the bucket is worth losing what is here."""
        if error.code not in PASSING:
            self.stage.failed(self.stage.begin())
            _log.warning("partition not put together", partition=one.name, why=str(error))
        self._rest(one, min(RETRY_SECONDS * 2**one.failures, RETRY_SECONDS_MAX))
        one.failures = min(one.failures + 1, 10)

    async def _take(self, step: Step) -> bool:
        """Read and append; False if the disk is full."""
        began = self.stage.begin()
        fault: OSError | None = None
        for one, appended, why in await self._taker.take(step):
            if one.is_dropped:
                continue
            if appended is not None:
                fault = self._appended(one, appended) or fault
            elif why is not None:
                self._failed(one, why)
        if fault is None:
            self.stage.succeeded(began)
            return True
        self.stage.failed(began)
        self._disk_failed(fault)
        if fault.errno not in _FULL:
            return True
        # What is there stays, and the largest goes to the store.
        self._round_at = self._clock.monotonic() + DISK_RETRY_SECONDS
        largest = max(self._all, key=lambda one: one.open_bytes, default=None)
        if largest is not None:
            self._cuts[largest] = None
        return False

    def _appended(self, one: Assembly, done: Appended) -> OSError | None:
        """What is wrong with the disk."""
        for part in done.cut:
            self._closed(one, part)
        self.stats.bytes += self._count(one)
        self._set_alarm(one)
        if done.error is None:
            one.failures = 0
        elif isinstance(done.error, OSError):
            self._rest(one, DISK_RETRY_SECONDS)
            return done.error
        else:
            one.owner.lost(str(done.error))
        return None

    # -- cuts ----------------------------------------------------------------------------------

    async def _cut(self, ones: Sequence[Assembly]) -> None:
        ones = [one for one in ones if not one.is_dropped and one.open_bytes]
        if not ones:
            return
        for one, part in zip(ones, await self._executor.run(lambda: _cut_all(ones)), strict=True):
            if one.is_dropped:
                continue
            if isinstance(part, OSError):
                self._disk_failed(part)
                # It may be what fills the disk.
                one.owner.lost(str(part))
            else:
                self._closed(one, part)

    def _closed(self, one: Assembly, part: ClosedPart) -> None:
        one.closed.append(part)
        self.stats.segments += 1
        one.owner.was_cut()


def _cut_all(ones: Sequence[Assembly]) -> list[ClosedPart | OSError]:
    """On a thread."""
    parts: list[ClosedPart | OSError] = []
    for one in ones:
        try:
            parts.append(one.cut())
        except OSError as error:
            parts.append(error)
    return parts
