"""A local filler over an in-memory engine, with its files in the test's directory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from skylog.diskless.local.fetch import LocalFetch
from skylog.diskless.local.filler import LocalFiller
from skylog.diskless.local.partitions import LocalPartition, LocalPartitions
from skylog.diskless.local.plan import LocalLimits
from skylog.diskless.local.round import LocalCopies
from skylog.diskless.local.threads import Threads
from skylog.diskless.plane import FindRequest, FindResult
from skylog.diskless.reader import ReadRequest, ReadResult
from skylog.diskless.regions import Region
from skylog.kernel.executor import ThreadExecutor
from skylog.log.files import Files
from tests.unit.diskless.engine import TOPIC_ID, Engine, item
from tests.unit.diskless.test_reader import CountingStore
from tests.waiting import eventually

SECONDS_MAX = 60.0
PARTITIONS = 2
LIMITS = LocalLimits(partition_bytes=1 << 20, bytes_max=1 << 30)


class Waiter:
    """Stands for a fetch that waits."""

    def __init__(self) -> None:
        self.moves = 0

    def partition_moved(self, appended_bytes: int) -> None:
        self.moves += 1


class World:
    """One broker's filler; ``engine`` outlives it, as the bucket and the plane do."""

    def __init__(
        self,
        engine: Engine,
        directory: Path,
        executor: ThreadExecutor,
        limits: LocalLimits,
        files: Files,
    ) -> None:
        self.engine = engine
        self.directory = directory
        self.finds: list[FindRequest] = []
        self._count_finds()
        work = asyncio.Event()
        seen = engine.partitions
        self.partitions = LocalPartitions(directory, seen, engine.clock, work.set)
        threads = Threads(executor)
        plane, reader = engine.plane, engine.reader
        self.copies = LocalCopies(
            self.partitions, limits, plane, reader, files, threads, engine.clock
        )
        self.filler = LocalFiller(self.copies, work)
        self.fetcher = LocalFetch(self.partitions, reader, threads)
        self._task: asyncio.Task[None] | None = None
        self._unwatch = engine.plane.watch(self.partitions.committed)

    def _count_finds(self) -> None:
        find = type(self.engine.plane).find_batches

        async def counted(requests: Sequence[FindRequest], *limits: int) -> list[FindResult]:
            self.finds += requests
            return await find(self.engine.plane, requests, *limits)

        self.engine.plane.find_batches = counted  # type: ignore[method-assign, assignment]

    @property
    def gets(self) -> list[Any]:
        found: list[Any] = self.engine.store.gets
        return found

    def start(self) -> World:
        for index in range(PARTITIONS):
            self.engine.partitions.assign("t", TOPIC_ID, index, 1, 0)
            self.partitions.host("t", TOPIC_ID, index)
        self._task = asyncio.ensure_future(self.filler.run())
        return self

    async def stop(self) -> None:
        """As a clean shutdown does."""
        await self.kill()
        await self.filler.close()

    async def kill(self) -> None:
        self._unwatch()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def one(self, index: int = 0) -> LocalPartition:
        found = self.partitions.get((TOPIC_ID, index))
        assert found is not None
        return found

    def region(self, index: int = 0) -> Region | None:
        return self.one(index).region

    async def caught_up(self, end: int, index: int = 0) -> None:
        await eventually(
            lambda: (
                self.one(index).following
                and self.one(index).end == end
                and self.one(index).round is None
            )
        )

    async def append(self, *values: bytes, index: int = 0) -> None:
        for value in values:
            await self.engine.writer.append(1, [item(value, index)])

    async def fetch(self, offset: int, index: int = 0, max_bytes: int = 1 << 20) -> ReadResult:
        request = ReadRequest(TOPIC_ID, index, offset, max_bytes)
        return (await self.fetcher.fetch([request], 1 << 20))[0]

    def path(self, index: int = 0) -> Path:
        return self.directory / f"t-{index}"

    def segments(self, index: int = 0) -> list[Path]:
        return sorted(self.path(index).glob("*.log"))


@contextlib.asynccontextmanager
async def world(directory: Path, **more: Any) -> AsyncIterator[World]:
    """A filler over a new, counted engine."""
    engine = await Engine(CountingStore).start(PARTITIONS)
    async with filler_of(engine, directory, **more) as found:
        yield found


@contextlib.asynccontextmanager
async def filler_of(
    engine: Engine, directory: Path, *, limits: LocalLimits = LIMITS, files: Files | None = None
) -> AsyncIterator[World]:
    executor = ThreadExecutor(2, "local-test")
    found = World(engine, directory, executor, limits, files or Files(100))
    try:
        yield found.start()
    finally:
        await found.stop()
        executor.close()
