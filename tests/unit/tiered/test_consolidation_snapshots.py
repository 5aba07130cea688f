"""Producer snapshots of consolidated segments: what came before, and what if that is lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.checkpoints import decode_snapshot, encode_snapshot
from skylog.log.closed import ClosedSegment
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.producers import ProducerEntry, RememberedBatch
from skylog.objects.store import NotFound, ObjectError, Outcome
from skylog.tiered.consolidation.assembly import Assembly, ClosedPart
from skylog.tiered.consolidation.snapshots import ProducerSnapshots
from skylog.tiered.segments import TopicIdPartition
from skylog.tiered.storage import DamagedSegment

KEY = TopicIdPartition(Uuid(b"0123456789abcdef"), 0)
HOUR_MS = 3_600_000


def entry(producer_id: int, sequence: int, timestamp: int) -> ProducerEntry:
    last = RememberedBatch(sequence, sequence, 0, timestamp)
    return ProducerEntry(producer_id, 0, -1, timestamp, -1, (last,))


class Remote:
    """A store with one segment before, and the remote log that names it."""

    def __init__(self) -> None:
        self.found: bytes | Exception = b""
        self.fetches = 0

    def get(self, partition: object) -> Any:
        return self

    def segment_for(self, epoch: int, offset: int) -> object:
        return "the one before"

    async def fetch_index(self, segment: object, kind: object) -> bytes:
        self.fetches += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class World:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.remote: Any = Remote()
        system = System(self.clock, random.Random(7), InlineExecutor())
        self.snapshots = ProducerSnapshots(self.remote, self.remote, Files(10), system)
        owner: Any = None
        self.assembly = Assembly(owner, KEY, "t-0", str(path), 10, LogConfig())

    def part(self, base: int, *producers: ProducerEntry) -> ClosedPart:
        target = str(self.path / f"{base + 10}.snapshot")
        closed = ClosedSegment(base, base + 10, 100, 0, "log", "index", "time", None, target)
        return ClosedPart(closed, base, 0, 0, producers)

    async def written(self, part: ClosedPart) -> dict[int, int]:
        await self.snapshots.write(self.assembly, part)
        return self.read(part)

    def read(self, part: ClosedPart) -> dict[int, int]:
        raw = Path(part.segment.producer_snapshot).read_bytes()
        return {one.producer_id: one.last_sequence for one in decode_snapshot(raw)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_the_one_before_is_fetched_once_per_leadership(world: World) -> None:
    now = world.clock.now_ms()
    world.remote.found = encode_snapshot([entry(1, 5, now), entry(2, 6, now)])
    assert await world.written(world.part(10, entry(2, 9, now))) == {1: 5, 2: 9}
    assert await world.written(world.part(20, entry(3, 0, now))) == {1: 5, 2: 9, 3: 0}
    assert world.remote.fetches == 1


async def test_a_snapshot_is_written_once(world: World) -> None:
    part = world.part(10, entry(1, 0, world.clock.now_ms()))
    await world.written(part)
    world.remote.found = ObjectError("away", Outcome.NOT_DONE)
    assert await world.written(part) == {1: 0}


async def test_producers_that_were_not_seen_for_long_are_forgotten(world: World) -> None:
    now = world.clock.now_ms()
    world.remote.found = encode_snapshot([entry(1, 5, now - 25 * HOUR_MS), entry(2, 6, now)])
    assert await world.written(world.part(10)) == {2: 6}


@pytest.mark.parametrize(
    "found",
    [b"", b"not a snapshot", NotFound("gone"), DamagedSegment("damaged")],
    ids=["empty", "malformed", "gone", "damaged"],
)
async def test_what_is_lost_for_good_does_not_stop_consolidation(
    world: World, found: bytes | Exception
) -> None:
    """Only Kafka reads it: the coordinator knows its producers."""
    world.remote.found = found
    now = world.clock.now_ms()
    assert await world.written(world.part(10, entry(1, 3, now))) == {1: 3}


async def test_a_store_that_is_away_is_asked_again(world: World) -> None:
    part = world.part(10)
    world.remote.found = ObjectError("away", Outcome.NOT_DONE)
    with pytest.raises(ObjectError):
        await world.snapshots.write(world.assembly, part)
    now = world.clock.now_ms()
    world.remote.found = encode_snapshot([entry(1, 5, now)])
    assert await world.written(part) == {1: 5}


async def test_the_first_segment_of_all_has_none_before(world: World) -> None:
    now = world.clock.now_ms()
    assert await world.written(world.part(0, entry(1, 3, now))) == {1: 3}
    assert world.remote.fetches == 0
