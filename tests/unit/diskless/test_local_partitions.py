"""Which copies fetches wait for, and which partition is copied next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skylog.diskless.local.partitions import (
    DISK_RETRY_SECONDS,
    RETRY_SECONDS,
    TAIL_WAIT_SECONDS,
    LocalPartition,
    LocalPartitions,
)
from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.regions import Region
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from tests.unit.diskless.engine import TOPIC_ID

KEY = (TOPIC_ID, 0)
WAIT_MS = int(TAIL_WAIT_SECONDS * 1000)


class FakeCopy:
    def __init__(self, end: int) -> None:
        self.region = Region(0, end)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.seen = DisklessPartitions()
        self.woken = 0
        self.partitions = LocalPartitions(Path("/x"), self.seen, self.clock, self._wake)
        self.seen.assign("t", TOPIC_ID, 0, 1, 0)
        self.partitions.host("t", TOPIC_ID, 0)

    def _wake(self) -> None:
        self.woken += 1

    @property
    def one(self) -> LocalPartition:
        found = self.partitions.get(KEY)
        assert found is not None
        return found

    @property
    def told(self) -> int:
        """The state that waiting fetches use."""
        found = self.seen.get(*KEY)
        assert found is not None
        return found.high_watermark

    def appended(self, end: int) -> None:
        copy: Any = FakeCopy(end)
        self.partitions.appended(self.one, copy, 1)


@pytest.fixture
def world() -> World:
    made = World()
    made.appended(0)
    made.partitions.committed(KEY, 10)
    made.appended(10)
    assert made.one.following
    return made


def test_commits_are_told_by_the_append_while_the_copy_follows(world: World) -> None:
    assert world.told == 10
    world.partitions.committed(KEY, 20)
    assert world.told == 10
    world.appended(20)
    assert world.told == 20


def test_commits_are_told_at_once_to_those_that_no_copy_serves(world: World) -> None:
    world.partitions.stop_following(world.one)
    world.partitions.committed(KEY, 20)
    assert world.told == 20


def test_a_copy_that_reaches_in_time_what_was_committed_before_is_waited_for(world: World) -> None:
    for number in range(20, 200, 10):
        # Always a commit behind, but never for long.
        world.partitions.committed(KEY, number)
        world.clock.advance(WAIT_MS * 2 // 3)
        world.partitions.give_up_waiting()
        world.partitions.committed(KEY, number + 10)
        world.appended(number)
        assert (world.one.following, world.told, world.one.behind) == (True, number, 10)


def test_a_copy_that_falls_behind_is_not_waited_for_though_it_moves(world: World) -> None:
    world.partitions.committed(KEY, 1_000_000)
    for end in range(11, 14):
        world.clock.advance(WAIT_MS // 2)
        world.appended(end)
        world.partitions.give_up_waiting()
    assert not world.one.following
    assert world.told == 1_000_000
    world.appended(1_000_000)
    assert world.one.following


def test_high_watermarks_that_are_found_first_are_waited_for_too(world: World) -> None:
    """A find may know a commit before its notification arrives."""
    world.partitions.heard(world.one, 0, 20)
    world.partitions.committed(KEY, 20)
    world.clock.advance(WAIT_MS)
    world.partitions.give_up_waiting()
    assert (world.one.following, world.told) == (False, 20)


def test_a_turn_after_a_failure_comes_later(world: World) -> None:
    one = world.one
    for fail, seconds in (
        (lambda: world.partitions.failed(one, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)),
         RETRY_SECONDS),
        (lambda: world.partitions.disk_failed(one, OSError("full")), DISK_RETRY_SECONDS),
    ):  # fmt: skip
        fail()
        assert not one.following
        assert world.partitions.ready() == []
        world.clock.advance(int(seconds * 1000))
        assert world.partitions.ready() == [one]
    assert one.region is None
    assert world.partitions.stats.disk_errors == 1


def test_a_namesake_waits_for_the_directory(world: World) -> None:
    old = world.one
    assert world.partitions.ready() == [old]
    world.partitions.take(old, "round")
    world.partitions.delete_topic(TOPIC_ID)
    other = type(TOPIC_ID)(b"\x01" * 16)
    world.partitions.host("t", other, 0)
    new = world.partitions.get((other, 0))
    assert world.partitions.ready() == []
    world.partitions.release(old, "another round")
    assert world.partitions.ready() == []
    world.partitions.release(old, "round")
    assert world.partitions.ready() == [old]
    world.partitions.take(old, "removal")
    world.partitions.removed(old)
    assert world.partitions.ready() == [new]


def test_deleted_records_are_not_in_the_region(world: World) -> None:
    world.partitions.log_started(KEY, 7)
    assert world.one.region == Region(7, 10)
    world.partitions.log_started(KEY, 3)
    assert world.one.region == Region(7, 10)
