"""A diskless partition as a source of segments: where it begins, and when it begins again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from skylog.broker.tiered.assembly_source import (
    AGAIN_SECONDS_MAX,
    AssemblyPorts,
    AssemblySource,
    Lag,
    as_assembled,
)
from skylog.broker.tiered.log_infos import LogInfos
from skylog.diskless.plane import DeleteRecordsResult, LogInfo
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.tiered.segments import TopicIdPartition

KEY = TopicIdPartition(Uuid(b"0123456789abcdef"), 0)
CONFIG = LogConfig(remote_storage_enable=True, remote=True)


class Plane:
    def __init__(self) -> None:
        self.info = LogInfo(ErrorCode.NONE, 0, 100, 1000, 0)

    async def log_info(self, partitions: Sequence[object]) -> list[LogInfo]:
        return [self.info for _ in partitions]

    async def delete_records(self, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [DeleteRecordsResult(ErrorCode.NONE, requests[0][2])]


class Held:
    """An assembly: the offsets that it has."""

    def __init__(self, offset: int, after_seconds: float) -> None:
        self.begins_at = self.position = offset
        self.after_seconds = after_seconds
        self.released = -1
        self.is_dropped = False
        self.high_watermark = -1
        self.closed: list[object] = []
        self.counted_bytes = 0
        self.oldest_ms = -1
        self.config: LogConfig | None = None


class Assembler:
    def __init__(self) -> None:
        self.begun: list[Held] = []

    def begin(self, *arguments: Any, after_seconds: float) -> Held:
        self.begun.append(Held(arguments[3], after_seconds))
        return self.begun[-1]

    def drop(self, held: Held) -> None:
        held.is_dropped = True

    def committed(self, held: Held, high_watermark: int) -> None:
        held.high_watermark = high_watermark

    def release(self, held: Held, covered_end: int) -> None:
        held.released = covered_end

    def configure(self, held: Held, config: LogConfig) -> None:
        held.config = config


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.assembler = Assembler()
        self.rolled: list[object] = []
        self.moved: list[object] = []
        self.plane: Any = Plane()
        ports = AssemblyPorts(
            self.plane,
            LogInfos(self.plane),
            self.assembler,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type] - nothing is copied here
            self.clock,
            self.rolled.append,
            self.moved.append,
        )
        self.source = AssemblySource(KEY, "t", CONFIG, ports)

    @property
    def held(self) -> Held:
        """The assembly that is at work."""
        (found,) = [one for one in self.assembler.begun if not one.is_dropped]
        return found

    @property
    def is_idle(self) -> bool:
        return all(one.is_dropped for one in self.assembler.begun)

    async def lead(self, epoch: int = 0, remote_end: int = 0) -> None:
        """As the manager prepares a leader."""
        self.source.led(epoch)
        await self.source.refresh()
        self.source.prepared()
        self.source.remote_moved(remote_end - 1, remote_end)


@pytest.fixture
def world() -> World:
    return World()


async def test_a_leader_begins_where_remote_segments_end(world: World) -> None:
    world.source.led(0)
    world.source.remote_moved(-1, -1)
    assert world.is_idle  # it does not know yet what there is
    await world.lead(remote_end=40)
    assert (world.held.begins_at, world.held.high_watermark) == (40, 100)
    assert world.source.covered_end == world.source.assembled_end == 40


async def test_commits_heard_before_the_coordinator_answers_are_not_forgotten(
    world: World,
) -> None:
    world.source.led(0)
    world.source.committed(120)
    assert world.source.lag.records == 120  # nothing is known to be remote
    await world.lead()
    assert world.held.high_watermark == world.source.log_end_offset == 120
    world.source.committed(110)
    assert world.source.log_end_offset == 120


async def test_another_leader_s_late_copy_makes_it_begin_anew(world: World) -> None:
    await world.lead(remote_end=40)
    world.held.position = 70
    world.source.remote_moved(59, 60)
    assert world.held.begins_at == 60
    assert len(world.assembler.begun) == 3


async def test_an_own_copy_only_releases_files(world: World) -> None:
    await world.lead(remote_end=40)
    held = world.held
    held.position, held.begins_at = 90, 70  # the segment before was copied
    world.source.remote_moved(69, 70)
    assert world.held is held
    assert held.released == 70


async def test_a_log_start_within_what_is_here_leaves_it(world: World) -> None:
    await world.lead()
    held = world.held
    held.position = 90
    world.source.heard(50, 100)
    world.source.remote_moved(-1, 50)
    assert world.held is held
    assert (held.released, world.source.log_start_offset) == (50, 50)
    world.source.heard(90, 100)
    assert world.held.begins_at == 90
    assert world.held is not held
    assert world.moved  # expiry is told


async def test_a_gap_behind_a_later_segment_does_not_restart_for_ever(world: World) -> None:
    await world.lead()
    held = world.held
    held.position = 90
    for _ in range(3):
        world.source.remote_moved(79, 0)
    assert world.held is held


async def test_a_deposed_leader_forgets_what_others_may_move(world: World) -> None:
    await world.lead(remote_end=40)
    world.source.unled()
    assert world.is_idle
    assert not world.source.knows_start
    world.plane.info = LogInfo(ErrorCode.NONE, 50, 200, 1000, 80)
    await world.lead(epoch=2, remote_end=90)
    assert world.held.begins_at == 90
    assert (world.source.log_start_offset, world.source.local_log_start_offset) == (50, 80)


@pytest.mark.parametrize(
    "change", [{"tiering_assembler": "external"}, {"remote_log_copy_disable": True}]
)
async def test_only_what_a_broker_is_to_copy_is_put_together(
    world: World, change: dict[str, Any]
) -> None:
    await world.lead()
    world.source.configure(replace(CONFIG, **change))
    assert world.is_idle
    world.source.committed(200)
    assert world.source.lag.records == 200
    world.source.configure(CONFIG)
    assert world.held.high_watermark == 200


async def test_an_assembly_that_fails_again_and_again_is_begun_ever_more_rarely(
    world: World,
) -> None:
    await world.lead()
    for _ in range(12):
        world.source.lost("as a test wants it")
    pauses = [one.after_seconds for one in world.assembler.begun[1:]]
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1] == AGAIN_SECONDS_MAX
    world.source.remote_moved(9, 10)  # it gets on
    world.source.lost("once more")
    assert world.held.after_seconds == pauses[0]


async def test_the_lag_ends_when_all_is_remote(world: World) -> None:
    await world.lead()
    world.clock.advance(5000)
    lag = world.source.lag
    assert (lag.records, lag.bytes, lag.seconds) == (100, 1000, 5.0)
    world.held.position = 100
    world.source.remote_moved(99, 100)
    assert world.source.lag == Lag()


async def test_a_partition_that_stays_unknown_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skylog.broker.tiered.assembly_source.ATTEMPT_SECONDS", 0.0)
    world.plane.info = LogInfo(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(KafkaError):
        await world.source.refresh()
    assert not world.source.knows_start


async def test_a_log_start_is_moved_by_the_coordinator(world: World) -> None:
    await world.lead()
    assert await world.source.start_at(30) == 30
    assert world.source.local_log_start_offset == 30


def test_copying_does_not_lag_behind_for_a_log_that_is_not_there() -> None:
    config = as_assembled(replace(CONFIG, remote_copy_lag_ms=5, remote_copy_lag_bytes=7))
    assert (config.remote_copy_lag_ms, config.remote_copy_lag_bytes) == (0, -1)
