"""Which remote segments expire: Kafka's rules, and where ours are stricter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skylog.kernel.ids import Uuid
from skylog.tiered.copying import Saga, Stage, copying, deleting, record_of
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.retention import Limits, LocalPart, expired, finished_bytes
from skylog.tiered.segments import RemoteSegment
from tests.tiered_world import PARTITION, TOPIC, Broker, World, WorldLog, with_config

NOW = 10_000
NONE = Limits()


class Remote:
    """A remote log made of (start, end, epochs), each in a state."""

    def __init__(self) -> None:
        self.log = RemoteLog(PARTITION, TOPIC)
        self._offset = 0
        self._count = 0

    def segment(
        self, start: int, end: int, *epochs: tuple[int, int], size: int = 100, time: int = 0
    ) -> RemoteSegment:
        self._count += 1
        return RemoteSegment(
            topic=TOPIC,
            partition=PARTITION,
            id=Uuid(self._count.to_bytes(16, "big")),
            start_offset=start,
            end_offset=end,
            broker_id=1,
            max_timestamp_ms=time,
            event_timestamp_ms=0,
            epochs=epochs or ((0, start),),
            size=size,
        )

    def started(self, *args: Any, **more: Any) -> RemoteSegment:
        segment = self.segment(*args, **more)
        self._apply(copying(segment))
        return segment

    def finished(self, *args: Any, **more: Any) -> RemoteSegment:
        segment = self.started(*args, **more)
        self._apply(Saga(segment, Stage.FINISH))
        return segment

    def deleting(self, *args: Any, **more: Any) -> RemoteSegment:
        segment = self.finished(*args, **more)
        self._apply(deleting(segment))
        return segment

    def _apply(self, saga: Saga) -> None:
        self.log.apply(record_of(saga, 1, 0, 5, -1), self._offset)
        self._offset += 1


def run(
    remote: Remote,
    epochs: list[tuple[int, int]],
    *,
    start: int = 0,
    local: int = 1000,
    end: int = 1000,
    only_local: int = 0,
    limits: Limits = NONE,
) -> tuple[list[int], int]:
    """The starts of the segments that go, and the new log start."""
    lineage = Lineage(epochs, end)
    part = LocalPart(start, local, end, only_local)
    found = expired(remote.log, lineage, part, limits, NOW)
    return [one.start_offset for one in found.segments], found.log_start_offset


def three(**more: Any) -> Remote:
    remote = Remote()
    for start, time in ((0, 1000), (10, 2000), (20, 3000)):
        remote.finished(start, start + 9, time=time, **more)
    return remote


def test_without_limits_nothing_expires() -> None:
    assert run(three(), [(0, 0)]) == ([], 0)


@pytest.mark.parametrize(
    ("retention_ms", "gone", "start"),
    [(9001, [], 0), (9000, [0], 10), (8000, [0, 10], 20), (0, [0, 10, 20], 30)],
)
def test_by_age(retention_ms: int, gone: list[int], start: int) -> None:
    assert run(three(), [(0, 0)], limits=Limits(retention_ms)) == (gone, start)


def test_what_is_below_the_log_start_takes_nothing_else_with_it() -> None:
    """Users deleted the first one; the others fit into the limit."""
    limits = Limits(retention_bytes=200)
    assert run(three(), [(0, 0)], start=10, limits=limits) == ([0], 10)
    assert run(three(), [(0, 0)], start=10, only_local=100, limits=limits) == ([0, 10], 20)


@pytest.mark.parametrize(
    ("retention_bytes", "only_local", "gone", "start"),
    [
        (300, 0, [], 0),
        (201, 0, [], 0),
        (200, 0, [0], 10),
        (199, 0, [0], 10),
        (200, 50, [0], 10),
        (200, 100, [0, 10], 20),
        (0, 0, [0, 10, 20], 30),
        (0, 5000, [0, 10, 20], 30),
    ],
)
def test_by_size(retention_bytes: int, only_local: int, gone: list[int], start: int) -> None:
    limits = Limits(retention_bytes=retention_bytes)
    assert run(three(), [(0, 0)], only_local=only_local, limits=limits) == (gone, start)


@pytest.mark.parametrize("again", [(0, 9), (5, 14), (0, 29), (25, 29)])
def test_what_two_leaders_have_copied_counts_once(again: tuple[int, int]) -> None:
    """300 bytes are there, some of them twice: nothing is above the limit."""
    remote = three()
    remote.finished(*again, size=(again[1] - again[0] + 1) * 10, time=1000)
    assert run(remote, [(0, 0)], limits=Limits(retention_bytes=300)) == ([], 0)
    assert finished_bytes(remote.log, Lineage([(0, 0)], 1000)) <= 300


def test_what_goes_by_age_counts_for_the_size() -> None:
    # 300 bytes, 150 allowed: the first goes by age, and one more would be too much by size.
    limits = Limits(9000, 150)
    assert run(three(), [(0, 0)], limits=limits) == ([0], 10)


def test_when_age_makes_the_next_one_go() -> None:
    lineage, part = Lineage([(0, 0)], 1000), LocalPart(0, 1000, 1000, 0)
    found = expired(three().log, lineage, part, Limits(9000), NOW)
    assert found.due_ms == 2000 + 9000
    assert expired(three().log, lineage, part, NONE, NOW).due_ms is None


def test_below_the_log_start() -> None:
    assert run(three(), [(0, 15)], start=15) == ([0], 15)
    assert run(three(), [(0, 20)], start=20) == ([0, 10], 20)


def test_below_the_log_start_in_an_emptied_log() -> None:
    assert run(three(), [(0, 30)], start=30, local=30, end=30) == ([0, 10, 20], 30)


def test_a_segment_that_is_being_copied_ends_the_walk() -> None:
    remote = Remote()
    remote.finished(0, 9)
    remote.started(10, 19)
    remote.finished(20, 29)
    assert run(remote, [(0, 0)], limits=Limits(0)) == ([0], 10)


def test_what_is_being_deleted_goes_in_any_case() -> None:
    remote = Remote()
    remote.finished(0, 9)
    remote.deleting(10, 19)
    assert run(remote, [(0, 0)]) == ([10], 0)
    # Though no epoch is known.
    assert run(remote, []) == ([10], 0)


def test_a_segment_outside_the_lineage_does_not_end_the_walk() -> None:
    """After an unclean election: epoch 1 had gone on to 30 where this log has epoch 2 from 20."""
    remote = Remote()
    remote.finished(0, 9, (1, 0))
    remote.finished(10, 29, (1, 10))
    remote.finished(20, 29, (2, 20))
    epochs = [(1, 0), (2, 20)]
    assert run(remote, epochs, limits=Limits(0)) == ([0, 20], 30)
    assert finished_bytes(remote.log, Lineage(epochs, 1000)) == 200
    assert finished_bytes(three().log, Lineage([(0, 0)], 1000)) == 300


def test_a_segment_of_two_epochs_is_seen_once() -> None:
    remote = Remote()
    remote.finished(0, 19, (1, 0), (2, 10))
    assert run(remote, [(1, 0), (2, 10)], limits=Limits(retention_bytes=0)) == ([0], 20)


def test_epochs_that_ended_go_where_others_can_be_read() -> None:
    remote = Remote()
    remote.finished(0, 9, (1, 0))
    remote.finished(0, 9, (2, 0))
    # Epoch 1 is below the earliest one, and all its offsets are in a segment of epoch 2.
    assert run(remote, [(2, 0)]) == ([0], 0)


def test_epochs_that_were_lost_do_not_look_like_epochs_that_ended() -> None:
    remote = three()
    # The checkpoint was rebuilt from local segments: nothing below 30 has an epoch.
    assert run(remote, [(4, 30)], local=30, limits=Limits(0)) == ([], 0)
    # Nor does a leader whose log was lost delete what it has not.
    assert run(remote, [(4, 0)], local=0, end=0) == ([], 0)
    assert run(remote, [(4, 0)], local=0, end=5) == ([], 0)
    # What is local can be read without them.
    assert run(remote, [(4, 0)], local=0, end=30) == ([0, 10, 20], 0)


def test_the_log_start_is_moved_before_anything_is_deleted() -> None:
    world = World()
    log = WorldLog(world)
    broker = Broker(world, log, 1)
    log.append(25)
    asyncio.run(broker.settle())
    log.config = with_config(retention_bytes=0)
    before = len(world.effects)
    asyncio.run(broker.settle())
    effects = world.effects[before:]
    assert effects[0] == "log start"
    assert effects[1:6] == [
        "publish RemoteLogSegmentMetadataUpdateRecord 2",
        *("delete manifest", "delete log", "delete indexes"),
        "publish RemoteLogSegmentMetadataUpdateRecord 3",
    ]
    assert world.remote().log_start == log.log_start_offset == 20
