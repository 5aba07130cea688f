"""Brokers that copy and delete segments are killed before each of their effects, one after another.

Whoever leads next, with the same disk or as a follower that has not heard of the log start, brings
everything to its end: all records from the log start on can be read at every moment, and the store
has exactly what the metadata topic names.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.tiered.segments import SegmentState
from tests.tiered_world import (
    PARTITION,
    RECORD_BYTES,
    SEGMENT_RECORDS,
    TOPIC,
    Broker,
    Crash,
    Reply,
    World,
    WorldLog,
    with_config,
)

SEGMENT_BYTES = SEGMENT_RECORDS * RECORD_BYTES
Script = Callable[[World, Broker], None]


def run(work: object) -> None:
    asyncio.run(work)  # type: ignore[arg-type]


def copies(world: World, broker: Broker) -> None:
    broker.log.append(35)
    run(broker.settle())
    broker.log.drop_local()
    broker.log.append(10)
    run(broker.settle())


def expires_by_size(world: World, broker: Broker) -> None:
    copies(world, broker)
    broker.log.config = with_config(retention_bytes=2 * SEGMENT_BYTES)
    run(broker.settle())


def expires_by_time(world: World, broker: Broker) -> None:
    copies(world, broker)
    broker.log.config = with_config(retention_ms=1000)
    world.clock.advance(2000)
    broker.log.append(5)
    run(broker.settle())


def deletes_records(world: World, broker: Broker) -> None:
    copies(world, broker)
    run(broker.log.start_at(23))
    run(broker.settle())
    broker.log.append(10)
    run(broker.log.start_at(broker.log.log_end_offset))
    run(broker.settle())


def leads_again(world: World, broker: Broker) -> None:
    """Two epochs, and what the first one left."""
    broker.log.append(25)
    run(broker.settle())
    broker.lead(broker.hosted.leader_epoch + 1)
    broker.log.append(20)
    run(broker.settle())
    broker.log.config = with_config(retention_bytes=SEGMENT_BYTES)
    run(broker.settle())


SCRIPTS = [copies, expires_by_size, expires_by_time, deletes_records, leads_again]


def play(script: Script, world: World) -> tuple[Broker, bool]:
    """The broker that ran a script, and whether it was killed."""
    broker = Broker(world, WorldLog(world), 1)
    try:
        script(world, broker)
    except Crash:
        return broker, True
    return broker, False


def effects_of(script: Script) -> int:
    world = World()
    play(script, world)
    return len(world.effects)


def killed_before(number: int, then: Callable[[int, str], str] | None = None) -> World:
    def fate(at: int, name: str) -> str:
        if at == number:
            raise Crash
        return Reply.NONE if then is None else then(at, name)

    return World(fate=fate)


def successor(world: World, dead: Broker, log: WorldLog) -> Broker:
    world.fate = lambda number, name: Reply.NONE
    return Broker(world, log, dead.hosted.leader_epoch + 1, seed=1)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_killed_before_each_effect_and_started_again(script: Script) -> None:
    total = effects_of(script)
    assert total > 10
    for number in range(total):
        world = killed_before(number)
        dead, was_killed = play(script, world)
        assert was_killed
        heir = successor(world, dead, dead.log)
        assert heir.log.log_start_offset >= dead.remote.log_start, "T6"
        heir.check()
        run(heir.settle())
        heir.check_settled()
        heir.log.drop_local()
        heir.check_settled()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_follower_that_has_not_heard_of_the_log_start_leads_next(script: Script) -> None:
    total = effects_of(script)
    for number in range(total):
        world = killed_before(number)
        dead, _ = play(script, world)
        log = WorldLog(world, dead.log.config)
        log.append(0)
        rebuilt = follower_of(world, dead, log)
        heir = successor(world, dead, rebuilt)
        run(heir.settle())
        assert heir.log.log_start_offset >= world.remote().log_start, "T6"
        heir.check_settled()


def follower_of(world: World, dead: Broker, log: WorldLog) -> WorldLog:
    """All records of the dead leader from 0 on, none of its retention."""
    log.epochs = copy.deepcopy(dead.log.epochs)
    if log.epochs.earliest is not None and log.epochs.earliest[1] > 0:
        first = next(iter(log.epochs))
        log.epochs = type(log.epochs)([(first[0], 0), *list(log.epochs)[1:]])
    for offset in range(dead.log.log_end_offset):
        log.append()
        active = log.segments[-1]
        active.records[-1] = (offset, log.epochs.of(offset))
    return log


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), script=st.sampled_from(SCRIPTS))
def test_failures_and_lost_answers_change_nothing(seed: int, script: Script) -> None:
    rng = random.Random(seed)

    def fate(number: int, name: str) -> str:
        if name in {"log start", "rebuild"} or number > 400:
            return Reply.NONE
        return rng.choice([Reply.NONE, Reply.NONE, Reply.FAIL_BEFORE, Reply.LOST_AFTER])

    world = World(fate=fate)
    broker, _ = play(script, world)
    world.fate = lambda number, name: Reply.NONE
    run(broker.settle())
    broker.check_settled()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_killed_again_and_again_under_faults(seed: int) -> None:
    rng = random.Random(seed)

    def fate(number: int, name: str) -> str:
        if rng.random() < 0.08:
            raise Crash
        if name in {"log start", "rebuild"}:
            return Reply.NONE
        return rng.choice([Reply.NONE] * 6 + [Reply.FAIL_BEFORE, Reply.LOST_AFTER])

    world = World(fate=fate)
    log = WorldLog(world)
    epoch = 0
    for _ in range(12):
        try:
            broker = Broker(world, log, epoch, seed)
            log.append(rng.randrange(25))
            log.config = with_config(retention_bytes=rng.choice([-1, -1, SEGMENT_BYTES * 2, 0]))
            run(broker.settle(rounds=4))
        except (Crash, AssertionError) as error:
            if isinstance(error, AssertionError) and "always" not in str(error):
                raise
        if rng.random() < 0.3:
            log.drop_local()
        broker.check()
        epoch += 1 + rng.randrange(2)
    world.fate = lambda number, name: Reply.NONE
    last = Broker(world, log, epoch, seed)
    run(last.settle())
    last.check_settled()


class Nap:
    """Before one of its effects an old leader sleeps, until the next one has done all of its work.

    It hears that it does not lead any more only some effects later.
    """

    def __init__(self, number: int) -> None:
        self.world = World(fate=self.fate)
        self.log = WorldLog(self.world)
        self.old = Broker(self.world, self.log, 1)
        self.heir: Broker | None = None
        self._number = number
        self._awake = 0

    def fate(self, at: int, name: str) -> str:
        if self.heir is not None:
            self._awake += 1
            if self._awake > 8:
                self.old.hosted.deposed()
        elif at == self._number:
            self._sleep()
        return Reply.NONE

    def _sleep(self) -> None:
        disk = WorldLog(self.world, self.log.config)
        disk.epochs = copy.deepcopy(self.log.epochs)
        disk.segments = copy.deepcopy(self.log.segments)
        disk.log_start_offset = self.log.log_start_offset
        self.world.fate = lambda number, name: Reply.NONE
        heir = Broker(self.world, disk, 7, seed=3)
        in_thread(lambda: run(heir.settle()))
        self.heir = heir
        self.world.fate = self.fate


def test_a_zombie_changes_nothing_that_the_next_leader_sees() -> None:
    for number in range(effects_of(leads_again)):
        nap = Nap(number)
        with contextlib.suppress(Crash):
            leads_again(nap.world, nap.old)
        assert nap.heir is not None
        nap.heir.logs.read()
        nap.heir.check()
        run(nap.heir.settle())
        nap.heir.check_settled(zombies=True)


def in_thread(work: Callable[[], None]) -> None:
    from threading import Thread

    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    thread = Thread(target=guarded)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_a_deleted_partition_killed_before_each_effect() -> None:
    def script(world: World, broker: Broker) -> None:
        copies(world, broker)
        run(broker.deletion.of_deleted(PARTITION, TOPIC))

    total = effects_of(script)
    for number in range(total):
        world = killed_before(number)
        dead, _ = play(script, world)
        heir = successor(world, dead, dead.log)
        run(heir.deletion.of_deleted(PARTITION, TOPIC))
        assert not world.objects
        assert not len(heir.remote)


def test_a_disabled_partition_killed_before_each_effect() -> None:
    def script(world: World, broker: Broker) -> None:
        copies(world, broker)
        run(broker.deletion.of_disabled(broker.hosted))

    total = effects_of(script)
    for number in range(total):
        world = killed_before(number)
        dead, _ = play(script, world)
        heir = successor(world, dead, dead.log)
        run(heir.log.start_at(heir.log.local_log_start_offset))
        run(heir.deletion.of_disabled(heir.hosted))
        assert not world.objects
        assert all(s.state is not SegmentState.COPY_FINISHED for s in heir.remote.all())
