"""The diskless coordinators of a broker: one per partition of ``__diskless_metadata`` it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from skylog.diskless.coordinator.loading import SqliteFactory, StateFactory
from skylog.diskless.coordinator.log import CoordinatorLog, MetadataPartition
from skylog.diskless.coordinator.runtime import CoordinatorRuntime, Ports, RuntimeSettings
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.plane import HighWatermarkListener, Unsubscribe
from skylog.diskless.planes.listeners import Listeners
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor, ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.log.files import Files
from skylog.replicated.timers import LoopTimers, Timers

_log = get_logger("diskless.coordinator")
_RELOAD_DELAY_MS: Final = 1_000
_DATABASE: Final = "state.sqlite"


class LedPartition(MetadataPartition, Protocol):
    @property
    def topic_id(self) -> Uuid: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What all coordinators of a broker share.

    Below ``directory`` each has one of its own, for its cache and its snapshots. ``background`` is
    for syncs and snapshots; every coordinator has a thread of its own besides.
    """

    directory: Path
    files: Files
    clock: Clock
    background: Executor
    timers: Timers
    new_thread: Callable[[str], Executor]
    new_factory: Callable[[Path, str], StateFactory]

    @classmethod
    def of_broker(
        cls, directory: Path, files: Files, clock: Clock, background: Executor
    ) -> Environment:
        return cls(
            directory=directory,
            files=files,
            clock=clock,
            background=background,
            timers=LoopTimers(),
            new_thread=lambda name: ThreadExecutor(1, name),
            new_factory=lambda path, identity: SqliteFactory(path / _DATABASE, identity),
        )


class DisklessCoordinators:
    """Loads, unloads and finds coordinators. All calls come from the event loop."""

    def __init__(self, environment: Environment, settings: RuntimeSettings) -> None:
        self._environment = environment
        self._settings = settings
        self._runtimes: dict[int, CoordinatorRuntime] = {}
        # Coordinators of the same number that have not let go of their files yet.
        self._closing: dict[int, asyncio.Task[None]] = {}
        self._loading: dict[CoordinatorRuntime, asyncio.Task[None]] = {}
        self._threads: dict[CoordinatorRuntime, Executor] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listeners = Listeners()
        self.snapshot_stage = Stage(environment.clock)

    def partition_led(self, index: int, partition: LedPartition) -> None:
        """This broker leads the partition now: load its coordinator, in the background."""
        self.partition_resigned(index)
        environment = self._environment
        identity = f"{partition.topic_id}-{index}"
        directory = environment.directory / identity
        thread = environment.new_thread(f"diskless-coordinator-{index}")
        ports = Ports(
            log=CoordinatorLog(partition, environment.background, sync=self._settings.sync),
            factory=environment.new_factory(directory, identity),
            snapshots=Snapshots(environment.files, directory),
            clock=environment.clock,
            executor=thread,
            background=environment.background,
            snapshot_stage=self.snapshot_stage,
            moved=self._listeners.tell,
            failed=lambda error: self._reload_later(runtime, directory, error),
        )
        runtime = CoordinatorRuntime(index, self._settings, ports)
        self._runtimes[index] = runtime
        self._threads[runtime] = thread
        self._start_loading(runtime, directory)

    def partition_resigned(self, index: int) -> None:
        """This broker leads the partition no more."""
        runtime = self._runtimes.pop(index, None)
        if runtime is not None:
            runtime.unload()
            self._closing[index] = self._start(self._close(runtime, self._closing.get(index)))

    def get(self, index: int) -> CoordinatorRuntime:
        """NOT_COORDINATOR when it is not here."""
        runtime = self._runtimes.get(index)
        if runtime is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return runtime

    def led(self) -> list[int]:
        return sorted(self._runtimes)

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._listeners.add(listener)

    async def loaded(self) -> None:
        """Wait until nothing is being loaded or closed."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        for index in tuple(self._runtimes):
            self.partition_resigned(index)
        await self.loaded()

    def _start_loading(self, runtime: CoordinatorRuntime, directory: Path) -> None:
        task = self._start(self._load(runtime, directory))
        self._loading[runtime] = task
        task.add_done_callback(lambda _: self._loading.pop(runtime, None))

    async def _load(self, runtime: CoordinatorRuntime, directory: Path) -> None:
        index = runtime.coordinator_id
        try:
            before = self._closing.pop(index, None)
            if before is not None:
                await asyncio.wait({before})
            await runtime.closed()
            await self._threads[runtime].run(
                lambda: directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            )
            if self._runtimes.get(index) is runtime:
                await runtime.load()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next try may do better
            self._reload_later(runtime, directory, error)

    def _reload_later(self, runtime: CoordinatorRuntime, directory: Path, error: Exception) -> None:
        index = runtime.coordinator_id
        _log.error("coordinator had to be unloaded", coordinator=index, why=str(error))

        def reload() -> None:
            if self._runtimes.get(index) is runtime:
                self._start_loading(runtime, directory)

        self._environment.timers.start(_RELOAD_DELAY_MS, reload)

    async def _close(self, runtime: CoordinatorRuntime, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        loading = self._loading.get(runtime)
        if loading is not None:
            await asyncio.wait({loading})
        await runtime.closed()
        thread = self._threads.pop(runtime)
        if isinstance(thread, ThreadExecutor):
            thread.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
