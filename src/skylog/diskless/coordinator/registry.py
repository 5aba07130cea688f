"""The diskless coordinators of a broker: one for each partition of ``__diskless_metadata`` that it
leads, and a standby for each one that it follows."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from skylog.diskless.coordinator import queries
from skylog.diskless.coordinator.leadership import LeadershipRounds
from skylog.diskless.coordinator.links import Links
from skylog.diskless.coordinator.log import CoordinatorLog, MetadataPartition
from skylog.diskless.coordinator.moves import Moves
from skylog.diskless.coordinator.replica import Replica, ReplicaStore
from skylog.diskless.coordinator.requests import (
    Find,
    FindBatches,
    ForgetFiles,
    HighWatermarks,
    Look,
    StrictRead,
    Write,
)
from skylog.diskless.coordinator.runtime import CoordinatorRuntime
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.standby import Standby
from skylog.diskless.listeners import Listeners
from skylog.diskless.plane import FindResult, HighWatermarkListener, TopicPartition, Unsubscribe
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.replicated.lifecycle import State
from skylog.replicated.timers import LoopTimers, Timers

_log = get_logger("diskless.coordinator")
_RELOAD_DELAY_MS: Final = 1_000


class NamedPartition(MetadataPartition, Protocol):
    @property
    def topic_id(self) -> Uuid: ...


@dataclass(frozen=True, slots=True)
class _Led:
    """A coordinator led here, and what belongs to this term."""

    runtime: CoordinatorRuntime
    replica: Replica
    moves: Moves
    rounds: LeadershipRounds


@dataclass(frozen=True, slots=True)
class _Followed:
    standby: Standby
    replica: Replica
    task: asyncio.Task[None]


class DisklessCoordinators:
    """Loads, unloads and finds coordinators. All calls come from the event loop."""

    def __init__(
        self,
        store: ReplicaStore,
        settings: RuntimeSettings,
        clock: Clock,
        links: Links | None = None,
        timers: Timers | None = None,
    ) -> None:
        """``links`` connect to the other replicas of the logs."""
        self._store = store
        self._settings = settings
        self._clock = clock
        self._links = links
        self._timers: Timers = LoopTimers() if timers is None else timers
        self._led: dict[int, _Led] = {}
        self._followed: dict[int, _Followed] = {}
        # Earlier coordinators with the same id that have not released their files yet.
        self._closing: dict[int, asyncio.Task[None]] = {}
        self._loading: dict[CoordinatorRuntime, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listeners = Listeners()
        self._ended = False
        self.snapshot_stage = Stage(clock)

    def partition_led(self, coordinator_id: int, partition: NamedPartition) -> None:
        """This broker leads the partition now: load its coordinator, in the background."""
        self.partition_resigned(coordinator_id)
        if self._ended:
            return
        replica = self._store.open(coordinator_id, partition.topic_id, "coordinator")
        moves = Moves(self._clock.now_ms())

        def moved(at: TopicPartition, high_watermark: int) -> None:
            moves.note(at, high_watermark)
            self._listeners.tell(at, high_watermark)

        runtime = CoordinatorRuntime(
            replica,
            CoordinatorLog(partition, replica.background, sync=self._settings.sync),
            self._settings,
            self._clock,
            self.snapshot_stage,
            moved=moved,
            failed=lambda error: self._reload_later(led, error),
        )
        rounds = LeadershipRounds(lambda: self._ask_replicas(runtime))
        led = _Led(runtime, replica, moves, rounds)
        self._led[coordinator_id] = led
        # Taken now: when the task runs, this one may be closing, and wait for the task.
        self._start_loading(led, self._closing.pop(coordinator_id, None))

    def partition_followed(self, coordinator_id: int, partition: NamedPartition) -> None:
        """Another broker leads the partition: keep a standby of its coordinator."""
        self.partition_resigned(coordinator_id)
        if self._ended:
            return
        replica = self._store.open(coordinator_id, partition.topic_id, "standby")
        standby = Standby(replica, partition, self._settings.rules, self._links)
        # Unlike the loading of a coordinator, nothing waits for this.
        task = asyncio.get_running_loop().create_task(
            self._follow(standby, replica, self._closing.get(coordinator_id))
        )
        self._followed[coordinator_id] = _Followed(standby, replica, task)

    def partition_resigned(self, coordinator_id: int) -> None:
        """This broker's role for the partition has ended."""
        led = self._led.pop(coordinator_id, None)
        if led is not None:
            led.runtime.unload()
            led.moves.end()
            self._closing[coordinator_id] = self._start(
                self._close(led, self._closing.get(coordinator_id))
            )
        followed = self._followed.pop(coordinator_id, None)
        if followed is not None:
            followed.standby.stop()
            self._closing[coordinator_id] = self._start(
                self._part(followed, self._closing.get(coordinator_id))
            )

    def get(self, coordinator_id: int) -> CoordinatorRuntime:
        """NOT_COORDINATOR if it is not here."""
        return self._get(coordinator_id).runtime

    def _get(self, coordinator_id: int) -> _Led:
        led = self._led.get(coordinator_id)
        if led is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return led

    @property
    def local(self) -> DisklessCoordinators:
        return self

    def led(self) -> list[int]:
        return sorted(self._led)

    def follows(self, coordinator_id: int) -> bool:
        return coordinator_id in self._followed

    def standby(self, coordinator_id: int) -> Standby | None:
        followed = self._followed.get(coordinator_id)
        return None if followed is None else followed.standby

    def snapshots(self, coordinator_id: int) -> Snapshots | None:
        """Those of a coordinator that leads or follows here."""
        led, standby = self._led.get(coordinator_id), self.standby(coordinator_id)
        if led is not None:
            return led.replica.snapshots
        return None if standby is None else standby.snapshots

    def all(self) -> list[int]:
        """Those that this broker knows by itself."""
        return self.led()

    def all_led(self) -> bool:
        return bool(self._led)

    def elsewhere(self) -> dict[int, int]:
        return {}

    async def submit(self, coordinator_id: int, request: Write | StrictRead) -> Any:
        """A strict read is answered once leadership is confirmed."""
        led = self._get(coordinator_id)
        if not isinstance(request, StrictRead) or len(led.runtime.log.isr) <= 1:
            return await led.runtime.submit(request)
        reply, _ = await asyncio.gather(led.runtime.submit(request), led.rounds.confirm())
        return reply

    async def _ask_replicas(self, runtime: CoordinatorRuntime) -> None:
        log, links = runtime.log, self._links
        if links is not None:
            await links.confirm(runtime.coordinator_id, log.isr, log.leader_epoch)

    async def find_behind(self, coordinator_id: int, request: FindBatches) -> list[FindResult]:
        """From the standby of a coordinator that is led elsewhere."""
        standby = self.standby(coordinator_id)
        if standby is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return await standby.find(request)

    async def wait(
        self, coordinator_id: int, since: int, seconds: float
    ) -> tuple[dict[TopicPartition, int], int]:
        """The high watermarks that moved after a position (see ``moves.py``), and the current
        position.

        Returns those of all partitions at once if the position is unknown.
        """
        led = self._get(coordinator_id)
        moved = led.moves.after(since)
        if moved is None:
            place = led.moves.place
            return dict(await led.runtime.find(HighWatermarks())), place
        if not moved:
            await led.moves.wait(since, seconds)
            if self._led.get(coordinator_id) is not led:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            moved = led.moves.after(since) or {}
        return moved, led.moves.place

    async def find(self, coordinator_id: int, request: Find | ForgetFiles) -> Any:
        return await self.get(coordinator_id).find(request)

    async def look(self, coordinator_id: int, request: Look) -> Any:
        return await self.get(coordinator_id).look(lambda view, _: queries.look(view, request))

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._listeners.add(listener)

    async def loaded(self) -> None:
        """Wait until nothing is being loaded or closed."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        """Unload all; later changes of metadata are ignored."""
        self._ended = True
        for coordinator_id in (*self._led, *self._followed):
            self.partition_resigned(coordinator_id)
        await self.loaded()

    # Loading and closing

    def _start_loading(self, led: _Led, before: asyncio.Task[None] | None = None) -> None:
        task = self._start(self._load(led, before))
        self._loading[led.runtime] = task
        task.add_done_callback(lambda _: self._loading.pop(led.runtime, None))

    async def _load(self, led: _Led, before: asyncio.Task[None] | None) -> None:
        coordinator_id = led.runtime.coordinator_id
        try:
            if before is not None:
                await asyncio.wait({before})
            await led.runtime.closed()
            await led.replica.prepare()
            if self._led.get(coordinator_id) is led:
                await self._build(led)
        except Exception as error:  # noqa: BLE001 - any error: retried
            self._reload_later(led, error)

    async def _build(self, led: _Led) -> None:
        links, coordinator_id = self._links, led.runtime.coordinator_id
        try:
            await led.runtime.load()
        except StorageError:
            if links is None:
                raise
            # Another replica may have the snapshot at which the log continues.
            await links.fetch_snapshot(coordinator_id, led.replica.snapshots)
            if self._led.get(coordinator_id) is led:
                await led.runtime.load()
        if led.runtime.state is State.ACTIVE:
            # Listeners may have missed commits while others led.
            for at, high_watermark in await led.runtime.find(HighWatermarks()):
                led.moves.note(at, high_watermark)
                self._listeners.tell(at, high_watermark)

    def _reload_later(self, led: _Led, error: Exception) -> None:
        coordinator_id = led.runtime.coordinator_id
        _log.error("coordinator failed, unloaded", coordinator=coordinator_id, why=str(error))

        def reload() -> None:
            if self._led.get(coordinator_id) is led:
                self._start_loading(led)

        self._timers.start(_RELOAD_DELAY_MS, reload)

    async def _close(self, led: _Led, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        loading = self._loading.get(led.runtime)
        if loading is not None:
            await asyncio.wait({loading})
        await led.runtime.closed()
        led.replica.close()

    async def _follow(
        self, standby: Standby, replica: Replica, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait({before})
        await replica.prepare()
        await standby.run()

    async def _part(self, followed: _Followed, before: asyncio.Task[None] | None) -> None:
        waited = {followed.task} if before is None else {followed.task, before}
        await asyncio.wait(waited)
        followed.replica.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
