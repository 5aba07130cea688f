"""Who is looked at when: triggers, slots, quota, and that idle partitions cost nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from skylog.kernel.clock import SystemClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.tiered.agenda import Agenda
from skylog.tiered.counts import TieredCounts
from skylog.tiered.manager import ManagerSettings, RemoteLogManager
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.quota import ByteQuota
from skylog.tiered.sagas import RetrySettings
from skylog.tiered.segments import SegmentState, TopicIdPartition
from tests.tiered_world import (
    PARTITION,
    TOPIC,
    Reply,
    World,
    WorldLog,
    WorldLogs,
    WorldStorage,
    with_config,
)
from tests.waiting import eventually

QUICK = RetrySettings(backoff_ms=1, backoff_ms_max=2, jitter=0.0)


class Rig:
    """A manager of one partition, with real time."""

    def __init__(self, world: World | None = None, **settings: object) -> None:
        self.world = world or World()
        self.log = WorldLog(self.world)
        self.logs = WorldLogs(self.world)
        self.storage = WorldStorage(self.world, self.log)
        system = System(SystemClock(), random.Random(1), InlineExecutor())
        self.counts = TieredCounts(system.clock)
        given = {"task_interval_ms": 20, "retry": QUICK, **settings}
        self.manager = RemoteLogManager(
            1, self.logs, self.storage, system, ManagerSettings(**given), self.counts
        )

    def lead(self, epoch: int = 0, *, records: int = 0) -> None:
        self.log.lead(epoch)
        self.log.append(records)
        self.manager.lead(PARTITION, TOPIC, epoch, self.log)

    def ends(self) -> list[int]:
        return [
            one.end_offset
            for one in self.world.remote().all()
            if one.state is SegmentState.COPY_FINISHED
        ]


def play(work: Callable[[Rig], Awaitable[None]], **settings: object) -> None:
    async def run() -> None:
        rig = Rig(**settings)  # type: ignore[arg-type]
        rig.manager.start()
        try:
            await work(rig)
        finally:
            await rig.manager.close()

    asyncio.run(run())


def test_leadership_and_rolls_start_copies() -> None:
    async def work(rig: Rig) -> None:
        rig.lead(records=15)
        await eventually(lambda: rig.ends() == [9])
        rig.log.append(10)
        rig.manager.rolled(PARTITION)
        await eventually(lambda: rig.ends() == [9, 19])

    play(work, task_interval_ms=3_600_000)


def test_a_follower_copies_nothing_but_knows_what_is_remote() -> None:
    async def work(rig: Rig) -> None:
        rig.lead(records=35)
        await eventually(lambda: rig.ends() == [9, 19, 29])
        rig.manager.unlead(PARTITION, TOPIC, rig.log)
        rig.log.append(10)
        rig.manager.rolled(PARTITION)
        rig.log.remote_moved(-1, 0)
        other = WorldLogs(rig.world)
        assert other.get(PARTITION) is not None
        rig.manager.unlead(PARTITION, TOPIC, rig.log)
        assert rig.log.highest_remote_offset == 29
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert rig.ends() == [9, 19, 29]

    play(work)


def test_expiry_comes_by_itself_when_age_makes_it_due() -> None:
    async def work(rig: Rig) -> None:
        now_ms = SystemClock().now_ms()
        rig.world.clock.advance(now_ms - rig.world.clock.now_ms())
        rig.log.config = with_config(retention_ms=150)
        rig.lead(records=15)
        await eventually(lambda: rig.ends() == [9])
        await eventually(lambda: not rig.world.objects)
        assert rig.log.log_start_offset == 10

    play(work)


def test_settings_that_change_are_followed() -> None:
    async def work(rig: Rig) -> None:
        rig.lead(records=35)
        await eventually(lambda: rig.ends() == [9, 19, 29])
        rig.log.config = with_config(retention_bytes=1500)
        rig.manager.lead(PARTITION, TOPIC, 0, rig.log)
        await eventually(lambda: rig.ends() == [29])

    play(work)


def test_a_lane_that_fails_is_tried_again() -> None:
    failures = [0]

    def fate(number: int, name: str) -> str:
        if name == "log start" and failures[0] < 3:
            failures[0] += 1
            return Reply.FAIL_BEFORE
        return Reply.NONE

    async def work(rig: Rig) -> None:
        rig.log.config = with_config(retention_bytes=0)
        rig.lead(records=15)
        await eventually(lambda: rig.log.log_start_offset == 10)
        await eventually(lambda: not rig.world.objects)
        assert failures == [3]

    play(work, world=World(fate=fate))


def test_a_deposed_leader_stops_in_the_middle() -> None:
    async def work(rig: Rig) -> None:
        reached = asyncio.Event()
        original = rig.storage.copy

        async def hang(*args: object) -> bytes | None:
            reached.set()
            await asyncio.Event().wait()
            return None

        rig.storage.copy = hang  # type: ignore[assignment, method-assign]
        rig.lead(1, records=15)
        await reached.wait()
        rig.manager.unlead(PARTITION, TOPIC, rig.log)
        await asyncio.sleep(0)
        rig.storage.copy = original  # type: ignore[method-assign]
        assert len(rig.world.remote().unfinished()) == 1
        # Led again, it cleans up what it had left itself.
        rig.lead(3)
        await eventually(lambda: rig.ends() == [9] and not rig.world.remote().unfinished())
        assert {key[0] for key in rig.world.objects} == {one.id for one in rig.world.remote().all()}

    play(work)


def test_a_new_epoch_of_the_same_leader_lets_its_saga_go_on() -> None:
    async def work(rig: Rig) -> None:
        reached, go = asyncio.Event(), asyncio.Event()
        original = rig.storage.copy

        async def wait(*args: object) -> bytes | None:
            reached.set()
            await go.wait()
            return await original(*args)  # type: ignore[arg-type]

        rig.storage.copy = wait  # type: ignore[assignment, method-assign]
        rig.lead(1, records=15)
        await reached.wait()
        rig.lead(2)
        go.set()
        await eventually(lambda: rig.ends() == [9])
        finished = next(iter(rig.world.remote().all()))
        assert finished.copier_epoch == 2
        assert len([e for e in rig.world.effects if e.endswith("MetadataRecord 0")]) == 1

    play(work)


def test_idle_partitions_are_on_no_agenda() -> None:
    async def work(rig: Rig) -> None:
        remotes = {}
        rig.logs.get = remotes.get  # type: ignore[method-assign]
        for number in range(2000):
            key = TopicIdPartition(Uuid(b"i" * 16), number)
            remotes[key] = RemoteLog(key, "idle")
            log = WorldLog(rig.world)
            log.lead(0)
            log.append(5)
            rig.manager.lead(key, "idle", 0, log)
        agenda = rig.manager._agenda
        await eventually(lambda: not len(agenda))
        assert not rig.manager._lanes

    play(work)


def test_an_agenda_keeps_the_earliest_time_of_each() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.put("a", 5.0)
    agenda.put("b", 3.0)
    agenda.put("a", 7.0)
    assert agenda.next_at == 3.0
    agenda.put("a", 1.0)
    assert list(agenda.take_due(2.0)) == ["a"]
    assert list(agenda.take_due(10.0)) == ["b"]
    assert agenda.next_at is None
    agenda.put("a", 4.0)
    agenda.drop("a")
    assert agenda.next_at is None
    assert not len(agenda)


def test_the_quota_counts_as_kafkas_does() -> None:
    """RLMQuotaManagerTest: 50 bytes a second, 11 windows of one second."""
    quota = ByteQuota(50, 11, 1)
    now = 1_000_000
    assert quota.throttle_ms(now) == 0
    quota.record(250, now)
    # All of it within the first second: 250 a second, until 250/50 seconds have passed.
    assert quota.throttle_ms(now + 2000) > 0
    assert quota.throttle_ms(now + 4999) > 0
    assert quota.throttle_ms(now + 5000) == 0
    quota.bytes_per_second_max = 1
    assert quota.throttle_ms(now + 5000) > 0


def test_copies_wait_for_the_quota() -> None:
    async def work(rig: Rig) -> None:
        rig.lead(records=35)
        await eventually(lambda: rig.ends() == [9])
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert rig.ends() == [9]
        rig.manager.reconfigure(ManagerSettings(retry=QUICK))
        await eventually(lambda: rig.ends() == [9, 19, 29])
        assert rig.counts.copy_throttle.count

    play(work, copy_bytes_per_second_max=10)


def test_a_topic_that_is_remote_again_keeps_what_is_copied_from_then_on() -> None:
    async def work(rig: Rig) -> None:
        rig.lead(records=15)
        await eventually(lambda: rig.ends() == [9])
        is_away = True

        def fate(_: int, name: str) -> str:
            return Reply.FAIL_BEFORE if is_away and name.startswith("delete") else Reply.NONE

        rig.world.fate = fate
        ended: list[None] = []
        rig.log.drop_local()
        rig.manager.disable(PARTITION, TOPIC, 0, rig.log, lambda: ended.append(None))
        await eventually(lambda: rig.world.effects.count("delete manifest") > 1)
        rig.log.append(10)
        rig.manager.lead(PARTITION, TOPIC, 0, rig.log)
        await eventually(lambda: rig.ends() == [19])
        is_away = False
        await eventually(lambda: len(rig.world.remote()) == 1)
        await asyncio.sleep(0.02)
        assert (rig.ends(), ended) == ([19], [])

    play(work)
