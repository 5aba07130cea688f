"""Copies and expires the segments of the partitions that this broker leads.

Each partition has two lanes, for copying and for expiry. A lane is looked at when it is due: after
a roll, a change of leader, settings or log start, a record of the metadata topic, or when time has
made something due. Only if there is something to do, a task does it, one segment after another. A
partition where nothing happens is on no agenda, so that ten thousand of them cost nothing.

Of the copy lane, in this order: preparing a new leader (``leading.py``) · cleaning what older
leaders left, once the partition is claimed · the oldest closed segment that is not remote · a
claim, if there is something to clean and nothing to copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.tiered.agenda import Agenda
from skylog.tiered.copier import Copier
from skylog.tiered.deletion import PartitionDeletion
from skylog.tiered.expirer import Expirer
from skylog.tiered.hosted import Hosted
from skylog.tiered.leading import Preparation
from skylog.tiered.quota import ByteQuota
from skylog.tiered.sagas import FAILURES, Backoff, RetrySettings, SagaRunner
from skylog.tiered.slots import Slots

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import CopySource, RemoteLogs, RemoteStorage
    from skylog.tiered.segments import TopicIdPartition

log = get_logger("tiered.manager")
# Partitions that are looked at before other tasks get a turn: a broker may begin to lead all of its
# partitions at once.
LOOKS_PER_TURN: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """Names and defaults are those of Kafka's ``remote.log.manager.*``."""

    copiers: int = 10
    expirers: int = 10
    task_interval_ms: int = 30_000
    copy_bytes_per_second_max: int = 2**63 - 1
    copy_window_count: int = 11
    copy_window_seconds: int = 1
    retry: RetrySettings = field(default_factory=RetrySettings)


class Lane(Enum):
    COPY = "copy"
    EXPIRE = "expire"


_LaneKey = tuple["TopicIdPartition", Lane]


class RemoteLogManager:
    """All methods run on the event loop."""

    def __init__(
        self,
        node_id: int,
        logs: RemoteLogs,
        storage: RemoteStorage,
        system: System,
        settings: ManagerSettings,
        counts: TieredCounts,
    ) -> None:
        self._logs = logs
        self._clock = system.clock
        self._settings = settings
        self._counts = counts
        self._hosted: dict[TopicIdPartition, Hosted] = {}
        self._agenda: Agenda[_LaneKey] = Agenda()
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lanes: dict[_LaneKey, asyncio.Task[None]] = {}
        # Lanes that were to be looked at while they worked: they are when they end.
        self._again: set[_LaneKey] = set()
        self._backoffs: dict[_LaneKey, Backoff] = {}
        self._deletions: dict[TopicIdPartition, asyncio.Task[None]] = {}
        self._copy_slots = Slots(settings.copiers)
        self._expire_slots = Slots(settings.expirers)
        self._quota = ByteQuota(
            settings.copy_bytes_per_second_max,
            settings.copy_window_count,
            settings.copy_window_seconds,
        )
        self.runner = SagaRunner(node_id, logs, storage, system, settings.retry, counts)
        self._copier = Copier(
            logs,
            self.runner,
            Preparation(storage),
            system,
            self._quota,
            self._copy_slots,
            counts,
        )
        self._expirer = Expirer(self.runner, system, self._expire_slots, counts)
        self._deletion = PartitionDeletion(self.runner, logs, system, self._expire_slots)
        logs.on_change(self._changed)

    def start(self) -> None:
        """Begin: this broker has read its own registration, so what it leads it leads alone."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Whatever is under way is completed by the next leader."""
        tasks = [*self._lanes.values(), *self._deletions.values()]
        if self._task is not None:
            tasks.append(self._task)
        await end_tasks(tasks)

    def reconfigure(self, settings: ManagerSettings) -> None:
        """Dynamic settings changed."""
        self._settings = settings
        self._copy_slots.resize(settings.copiers)
        self._expire_slots.resize(settings.expirers)
        self._quota.bytes_per_second_max = settings.copy_bytes_per_second_max

    # -- partitions ----------------------------------------------------------------------------

    def lead(
        self, partition: TopicIdPartition, topic: str, leader_epoch: int, source: CopySource
    ) -> None:
        """This broker leads, perhaps in a new epoch or with other settings."""
        self._end_deletion(partition)
        hosted = self._host(partition, topic, source)
        hosted.led(leader_epoch)
        self._changed(partition)
        self._wake(partition, Lane.COPY)
        self._wake(partition, Lane.EXPIRE)

    def unlead(self, partition: TopicIdPartition, topic: str, source: CopySource) -> None:
        """This broker has a replica, and another one leads."""
        self._end_deletion(partition)
        hosted = self._host(partition, topic, source)
        if hosted.leads:
            hosted.deposed()
            self._stop(partition)
            self._counts.no_longer_led(topic, partition.partition_index)
        self._changed(partition)

    def forget(self, partition: TopicIdPartition) -> None:
        """The replica is elsewhere now."""
        self._end_deletion(partition)
        hosted = self._hosted.pop(partition, None)
        if hosted is not None:
            hosted.deposed()
            self._stop(partition)
            self._counts.no_longer_led(hosted.topic, partition.partition_index)

    def delete(self, partition: TopicIdPartition, topic: str, done: Callable[[], None]) -> None:
        """The topic of a partition that was led here was deleted: its remote segments go, then
        ``done`` is called."""
        self.forget(partition)

        async def work() -> None:
            await self._deletion.of_deleted(partition, topic)
            self._counts.forget(topic)
            done()

        self._begin_deletion(partition, work)

    async def complete_deletion(self, partition: TopicIdPartition, topic: str) -> None:
        """Whoever led a partition of a deleted topic may not have deleted all of it."""
        if partition in self._hosted or partition in self._deletions:
            return
        self._logs.follow(partition, topic)
        try:
            await self._deletion.of_deleted(partition, topic)
        finally:
            self._logs.unfollow(partition)

    def disable(
        self,
        partition: TopicIdPartition,
        topic: str,
        leader_epoch: int,
        source: CopySource,
        done: Callable[[], None],
    ) -> None:
        """A topic that this broker leads is not remote any more, and its segments shall go."""
        self.forget(partition)
        hosted = Hosted(partition, topic, source)
        hosted.led(leader_epoch)

        async def work() -> None:
            await source.start_at(source.local_log_start_offset)
            await self._deletion.of_disabled(hosted)
            done()

        self._begin_deletion(partition, work)

    def _begin_deletion(
        self, partition: TopicIdPartition, work: Callable[[], Awaitable[None]]
    ) -> None:
        task = asyncio.get_running_loop().create_task(self._until_done(work))
        self._deletions[partition] = task
        task.add_done_callback(lambda done: self._deletion_ended(partition, done))

    def _end_deletion(self, partition: TopicIdPartition) -> None:
        """It would go on with whatever is copied from now on."""
        deletion = self._deletions.pop(partition, None)
        if deletion is not None:
            deletion.cancel()

    def _deletion_ended(self, partition: TopicIdPartition, task: asyncio.Task[None]) -> None:
        if self._deletions.get(partition) is task:
            del self._deletions[partition]

    def hosted(self, partition: TopicIdPartition) -> Hosted | None:
        return self._hosted.get(partition)

    def work_left(self, partition: TopicIdPartition) -> None:
        """A copy was given up: there may be something to clean."""
        self._wake(partition, Lane.COPY)

    def rolled(self, partition: TopicIdPartition) -> None:
        """A segment was closed."""
        hosted = self._hosted.get(partition)
        if hosted is not None and not hosted.leads:
            # It may have been remote before this replica had it.
            self._changed(partition)
        self._wake(partition, Lane.COPY)
        self._wake_expiry(partition)

    def start_moved(self, partition: TopicIdPartition) -> None:
        """The log start has moved: remote segments may be below it."""
        self._wake_expiry(partition)

    def _host(self, partition: TopicIdPartition, topic: str, source: CopySource) -> Hosted:
        hosted = self._hosted.get(partition)
        if hosted is None or hosted.source is not source:
            hosted = self._hosted[partition] = Hosted(partition, topic, source)
        return hosted

    def _stop(self, partition: TopicIdPartition) -> None:
        for lane in Lane:
            key = partition, lane
            self._agenda.drop(key)
            self._backoffs.pop(key, None)
            task = self._lanes.get(key)
            if task is not None:
                task.cancel()

    def _changed(self, partition: TopicIdPartition) -> None:
        """A record of the metadata topic was applied, or all that were there."""
        hosted, remote = self._hosted.get(partition), self._logs.get(partition)
        if hosted is None or remote is None:
            return
        hosted.follow(remote)
        if hosted.leads:
            self._wake(partition, Lane.COPY)
            self._wake_expiry(partition)

    # -- lanes ---------------------------------------------------------------------------------

    def _wake(self, partition: TopicIdPartition, lane: Lane, at: float | None = None) -> None:
        hosted = self._hosted.get(partition)
        if hosted is None or not hosted.leads:
            return
        self._agenda.put((partition, lane), self._clock.monotonic() if at is None else at)
        self._work.set()

    def _wake_expiry(self, partition: TopicIdPartition) -> None:
        """Not more often than each task interval, whatever is told."""
        hosted = self._hosted.get(partition)
        if hosted is not None:
            interval = self._settings.task_interval_ms / 1000
            self._wake(partition, Lane.EXPIRE, hosted.expired_at + interval)

    async def _run(self) -> None:
        while True:
            self._work.clear()
            now = self._clock.monotonic()
            for seen, key in enumerate(self._agenda.take_due(now), 1):
                self._look(key)
                if seen % LOOKS_PER_TURN == 0:
                    await asyncio.sleep(0)
            at = self._agenda.next_at
            wait = None if at is None else max(at - self._clock.monotonic(), 0)
            try:
                async with asyncio.timeout(wait):
                    await self._work.wait()
            except TimeoutError:
                continue

    def _look(self, key: _LaneKey) -> None:
        """Begin a task if there is something to do."""
        partition, lane = key
        hosted, remote = self._hosted.get(partition), self._logs.get(partition)
        if hosted is None or remote is None or not hosted.leads:
            return  # it is told when the remote log is ready
        if key in self._lanes:
            self._again.add(key)
            return
        if lane is Lane.EXPIRE:
            hosted.expired_at = self._clock.monotonic()
        worker = self._worker(lane)
        try:
            if not worker.has_work(hosted, remote):
                self._rest(key, hosted, worker.due_ms(hosted, remote))
                return
        except Exception:  # whatever it is, other partitions go on
            log.exception("partition not looked at", topic=hosted.topic, lane=lane.value)
            self._back_off(key)
            return
        task = asyncio.get_running_loop().create_task(self._lane(key, hosted, remote))
        self._lanes[key] = task
        task.add_done_callback(lambda _: self._lane_ended(key))

    def _worker(self, lane: Lane) -> Copier | Expirer:
        return self._copier if lane is Lane.COPY else self._expirer

    async def _lane(self, key: _LaneKey, hosted: Hosted, remote: RemoteLog) -> None:
        """Do all that there is to do in a lane."""
        try:
            due_ms = await self._worker(key[1]).run(hosted, remote)
            self._backoffs.pop(key, None)
            self._rest(key, hosted, due_ms)
        except FAILURES as error:
            why = str(error) or type(error).__name__
            log.warning("lane rests", topic=hosted.topic, lane=key[1].value, why=why)
            self._back_off(key)
        except Exception:  # whatever it is, other lanes go on
            log.exception("lane failed", topic=hosted.topic, lane=key[1].value)
            self._back_off(key)

    def _lane_ended(self, key: _LaneKey) -> None:
        """Perhaps cancelled; this broker may lead again by now."""
        del self._lanes[key]
        if key in self._again:
            self._again.discard(key)
            self._wake(*key)

    def _back_off(self, key: _LaneKey) -> None:
        backoff = self._backoffs.setdefault(key, self.runner.backoff())
        self._wake(*key, at=self._clock.monotonic() + backoff.next_seconds())

    def _rest(self, key: _LaneKey, hosted: Hosted, due_ms: int | None) -> None:
        """There is nothing to do now, perhaps at ``due_ms``."""
        if not hosted.leads:
            return
        now, interval = self._clock.monotonic(), self._settings.task_interval_ms / 1000
        if key[1] is Lane.COPY:
            hosted.source.wake_when_stable(lambda: self._wake(*key))
            self._wake_expiry(hosted.partition)
        elif hosted.source.limits.retention_bytes >= 0 and self._logs.get(hosted.partition):
            # Records that are appended count, too.
            self._agenda.put(key, now + interval)
        if due_ms is not None:
            self._agenda.put(key, now + max(due_ms - self._clock.now_ms(), 0) / 1000)

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        backoff = self.runner.backoff()
        while True:
            try:
                await work()
            except FAILURES as error:
                log.warning("remote segments not deleted", why=str(error))
            except Exception:
                log.exception("remote segments not deleted")
            else:
                return
            await asyncio.sleep(backoff.next_seconds())
