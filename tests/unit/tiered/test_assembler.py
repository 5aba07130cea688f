"""The assembler over a WAL in memory: what it reads, writes, cuts and leaves alone."""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.config import LogConfig
from skylog.log.files import Descriptor, Files
from skylog.tiered.consolidation import plan
from skylog.tiered.consolidation.assembler import Assembler, AssemblerSettings
from skylog.tiered.consolidation.assembly import Assembly
from skylog.tiered.consolidation.leftovers import remove_leftovers
from skylog.tiered.consolidation.wal import Found, Records, WalBatch, Wanted
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.batch import patch_offset
from skylog.wire.buffers import Buffer
from tests.unit.log.support import batch

TOPIC_ID = Uuid(b"0123456789abcdef")
INTERVAL_MS = 2000
VALUE = bytes(400)


class FullDisk(Files):
    """Refuses to write while ``is_full``."""

    is_full = False

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().pwritev(descriptor, buffers, position)


class MemoryWal:
    """The batches of each partition; each commit is an object with a batch of several."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.batches: dict[TopicIdPartition, list[WalBatch]] = {}
        self.starts: dict[TopicIdPartition, int] = {}
        self.errors: dict[TopicIdPartition, ErrorCode] = {}
        self.unreadable: set[str] = set()
        self.gets: list[str] = []
        self.finds: list[int] = []
        self._objects = 0

    def commit(self, *partitions: TopicIdPartition, count: int = 1) -> None:
        self._objects += 1
        for key in partitions:
            kept = self.batches.setdefault(key, [])
            offset = kept[-1].next_offset if kept else 0
            data = bytearray(batch(*[VALUE] * count).buffer)
            patch_offset(data, offset, 0)
            name, now_ms = f"o{self._objects:06d}", self._clock.now_ms()
            kept.append(WalBatch(name, now_ms, offset, offset + count, len(data), bytes(data)))

    def end(self, key: TopicIdPartition) -> int:
        kept = self.batches.get(key)
        return kept[-1].next_offset if kept else 0

    async def find(self, wanted: Sequence[Wanted], batches_max: int) -> list[Found]:
        self.finds.append(len(wanted))
        return [self._found(key, offset, batches_max) for key, offset in wanted]

    def _found(self, key: TopicIdPartition, offset: int, batches_max: int) -> Found:
        start, end = self.starts.get(key, 0), self.end(key)
        error = self.errors.get(key, ErrorCode.NONE)
        if error is ErrorCode.NONE and not start <= offset <= end:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        if error is not ErrorCode.NONE:
            return Found(error, (), start, end)
        found = [one for one in self.batches.get(key, []) if one.next_offset > offset]
        return Found(error, found[:batches_max], start, end)

    async def read(self, batches: Sequence[Sequence[WalBatch]]) -> list[Records]:
        keys = {one.object_key for run in batches for one in run}
        self.gets += sorted(keys)
        return [
            Records(ErrorCode.KAFKA_STORAGE_ERROR)
            if any(one.object_key in self.unreadable for one in run)
            else Records(ErrorCode.NONE, [one.where for one in run])
            for run in batches
        ]


class Owner:
    """The leader of one partition."""

    def __init__(self, world: World, key: TopicIdPartition, config: LogConfig) -> None:
        self._world = world
        self.key = key
        self.config = config
        self.start = 0
        self.covered_end = 0
        self.cuts = 0
        self.losses: list[str] = []
        self.assembly = self.begin()

    def begin(self, after_seconds: float = 0.0) -> Assembly:
        offset = max(self.covered_end, self.start)
        self.assembly = self._world.assembler.begin(
            self, self.key, "t", offset, self.config, after_seconds=after_seconds
        )
        return self.assembly

    def heard(self, log_start_offset: int, high_watermark: int) -> None:
        self.start = max(self.start, log_start_offset)

    def was_cut(self) -> None:
        self.cuts += 1

    def lost(self, why: str) -> None:
        self.losses.append(why)
        self._world.assembler.drop(self.assembly)
        self.begin(after_seconds=1.0)
        self._world.told(self)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(one.segment.base_offset, one.segment.next_offset) for one in self.assembly.closed]


class World:
    def __init__(self, path: Path, disk_bytes_max: int = 2**40) -> None:
        self.path = path / "diskless-tiering"
        self.clock = ManualClock()
        self.wal = MemoryWal(self.clock)
        self.files = FullDisk(100)
        system = System(self.clock, random.Random(7), InlineExecutor())
        settings = AssemblerSettings(disk_bytes_max=disk_bytes_max, interval_ms=INTERVAL_MS)
        self.assembler = Assembler(self.path, self.wal, self.files, system, settings)
        self.owners: list[Owner] = []

    def lead(self, index: int = 0, **config: int) -> Owner:
        owner = Owner(self, TopicIdPartition(TOPIC_ID, index), LogConfig(**config))
        self.owners.append(owner)
        return owner

    def told(self, owner: Owner) -> None:
        self.assembler.committed(owner.assembly, self.wal.end(owner.key))

    async def produce(self, *owners: Owner, count: int = 1, times: int = 1) -> None:
        for _ in range(times):
            self.wal.commit(*(owner.key for owner in owners), count=count)
        for owner in owners:
            self.told(owner)
        await self.round()

    async def round(self) -> None:
        self.clock.advance(INTERVAL_MS)
        await self.assembler.work()

    def files_there(self) -> list[str]:
        return sorted(path.name for path in self.path.rglob("*") if path.is_file())

    def block(self, owner: Owner) -> None:
        """Let a file be where the directory of an assembly is to be."""
        self.path.mkdir(parents=True, exist_ok=True)
        Path(owner.assembly.directory).write_text("in the way")

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def written(self, owner: Owner) -> bytes:
        paths = sorted(Path(owner.assembly.directory).glob("*.log"))
        return b"".join(path.read_bytes() for path in paths)

    @property
    def open_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.path.rglob("*.log"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


SIZE = len(batch(VALUE).buffer)


async def test_segments_are_cut_by_their_size_and_have_the_bytes_of_the_batches(
    world: World,
) -> None:
    one = world.lead(segment_bytes=3 * SIZE)
    await world.produce(one, times=8)
    assert one.ranges == [(0, 3), (3, 6)]
    assert one.cuts == 2
    assert one.assembly.position == 8
    wanted = [bytes(found.where) for found in world.wal.batches[one.key]]
    for number, part in enumerate(one.assembly.closed):
        written = world.read(part.segment.log)
        assert written == b"".join(wanted[3 * number : 3 * number + 3])
        walk = part.check()
        walk.take(written)
        walk.end()
    assert not world.files._table  # closed when they were written


async def test_an_object_is_read_once_for_all_partitions(world: World) -> None:
    ones = [world.lead(index) for index in range(50)]
    for _ in range(20):
        world.wal.commit(*(one.key for one in ones))
    for one in ones:
        world.told(one)
    await world.round()
    assert len(world.wal.gets) == len(set(world.wal.gets)) == 20
    assert world.wal.finds == [50]
    assert {one.assembly.position for one in ones} == {20}


async def test_more_than_a_round_takes_is_taken_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "ROUND_BATCHES_MAX", 8)
    ones = [world.lead(index) for index in range(4)]
    await world.produce(*ones, times=9)
    assert {one.assembly.position for one in ones} == {9}
    assert len(world.wal.gets) == 9


async def test_a_busy_partition_does_not_make_others_read_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition has many batches in each object, the others have few, and not in all."""
    monkeypatch.setattr(plan, "ROUND_BATCHES_MAX", 64)
    busy, *others = [world.lead(index) for index in range(16)]
    rng = random.Random(7)
    for _ in range(60):
        some = [one for one in others if rng.random() < 0.3]
        world.wal.commit(*[busy.key] * 10, *(one.key for one in some))
    for one in (busy, *others):
        world.told(one)
    await world.round()
    assert busy.assembly.position == 600
    assert all(one.assembly.position == world.wal.end(one.key) for one in others)
    # With so small rounds, one ends within nearly every sixth object.
    assert len(world.wal.gets) <= 1.2 * 60


async def test_one_that_cannot_be_written_does_not_hold_up_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = world.lead(0), world.lead(1)
    world.block(bad)
    await world.produce(bad, good)
    await world.produce(bad, good)
    assert (bad.assembly.position, good.assembly.position) == (0, 2)
    assert bad.losses == []


def test_the_longest_names_fit(world: World) -> None:
    key = TopicIdPartition(TOPIC_ID, 2**31 - 1)
    owner = world.lead()
    made = world.assembler.begin(owner, key, "t" * 249, 0, LogConfig())
    assert len(made.directory.rpartition("/")[2]) < 255


async def test_nothing_is_done_where_nothing_happens(world: World) -> None:
    idle = [world.lead(index) for index in range(1000)]
    busy = world.lead(1000)
    for owner in idle:
        world.told(owner)
    await world.produce(busy)
    assert world.wal.finds == [1]
    before = list(world.wal.gets)
    for _ in range(10):
        await world.round()
    assert world.wal.finds == [1]
    assert world.wal.gets == before
    assert len(world.assembler._agenda) == 1  # segment.ms of the one that is open


async def test_rounds_keep_their_distance(world: World) -> None:
    one = world.lead()
    await world.produce(one)
    for _ in range(5):
        world.wal.commit(one.key)
        world.told(one)
        await world.assembler.work()
    assert len(world.wal.finds) == 1
    await world.round()
    assert len(world.wal.finds) == 2
    assert one.assembly.position == 6


async def test_time_cuts_an_idle_segment(world: World) -> None:
    one = world.lead(segment_ms=60_000)
    await world.produce(one, times=2)
    world.clock.advance(57_999)
    await world.assembler.work()
    assert one.ranges == []
    world.clock.advance(1)
    await world.assembler.work()
    assert one.ranges == [(0, 2)]
    assert one.assembly.open_bytes == 0


async def test_what_arrived_long_ago_is_cut_as_if_it_had_been_read_then(world: World) -> None:
    one = world.lead(segment_ms=60_000)
    for _ in range(6):
        world.wal.commit(one.key)
        world.clock.advance(30_000)
    world.told(one)
    await world.assembler.work()
    assert one.ranges == [(0, 2), (2, 4), (4, 6)]


async def test_a_shorter_time_counts_at_once(world: World) -> None:
    one = world.lead(segment_ms=3_600_000)
    await world.produce(one)
    world.assembler.configure(one.assembly, LogConfig(segment_ms=1))
    await world.assembler.work()
    assert one.ranges == [(0, 1)]


async def test_a_batch_that_begins_below_is_taken_whole(world: World) -> None:
    one = world.lead(segment_bytes=2 * len(batch(*[VALUE] * 5).buffer))
    world.wal.commit(one.key, count=5)
    world.assembler.drop(one.assembly)
    one.covered_end = 3
    one.begin()
    await world.produce(one, count=5, times=2)
    assert one.ranges == [(0, 10)]
    assert one.assembly.closed[0].wanted_from == 3
    assert one.assembly.begins_at == 3


async def test_files_go_when_they_are_remote(world: World) -> None:
    one = world.lead(segment_bytes=2 * SIZE)
    await world.produce(one, times=5)
    assert len([name for name in world.files_there() if name.endswith(".log")]) == 3
    world.assembler.release(one.assembly, 4)
    await world.assembler.work()
    assert world.files_there() == ["00000000000000000004.log"]
    assert world.assembler.used_bytes == SIZE
    world.assembler.drop(one.assembly)
    await world.assembler.work()
    assert world.files_there() == []
    assert world.assembler.used_bytes == 0


async def test_the_largest_is_cut_while_there_is_too_much(tmp_path: Path) -> None:
    world = World(tmp_path, disk_bytes_max=10 * SIZE)
    small, large = world.lead(0), world.lead(1)
    await world.produce(small)
    await world.produce(large, times=7)
    assert (small.ranges, large.ranges) == ([], [(0, 7)])
    assert world.assembler.stats.cut_early == 1
    assert world.assembler.used_bytes == world.open_bytes == 8 * SIZE


async def test_nothing_is_read_while_the_disk_is_used_up(tmp_path: Path) -> None:
    world = World(tmp_path, disk_bytes_max=10 * SIZE)
    one = world.lead()
    await world.produce(one, times=40)
    taken = one.assembly.position
    assert 10 <= taken < 40
    finds = len(world.wal.finds)
    for _ in range(5):
        await world.round()
    assert (one.assembly.position, len(world.wal.finds)) == (taken, finds)
    world.assembler.release(one.assembly, taken)
    for _ in range(5):
        await world.round()
        world.assembler.release(one.assembly, max((end for _, end in one.ranges), default=0))
    assert one.assembly.position == 40


async def test_a_partition_that_is_not_copied_is_read_a_few_segments_ahead(world: World) -> None:
    slow, other = world.lead(0, segment_bytes=SIZE), world.lead(1)
    for _ in range(10):
        await world.produce(slow, other)
    assert len(slow.ranges) == plan.CLOSED_MAX
    assert other.assembly.position == 10
    world.assembler.release(slow.assembly, 3)
    await world.round()
    assert slow.assembly.position > 5


async def test_a_full_disk_loses_nothing_and_is_tried_again(world: World) -> None:
    one, two = world.lead(0), world.lead(1)
    await world.produce(one, two, times=3)
    await world.produce(one)
    world.files.is_full = True
    await world.produce(two, times=2)
    assert two.assembly.position == 3
    assert two.losses == []
    assert world.assembler.stats.disk_errors
    finds = len(world.wal.finds)
    await world.round()
    assert len(world.wal.finds) == finds  # not every two seconds
    world.files.is_full = False
    world.clock.advance(30_000)
    await world.assembler.work()
    assert (one.assembly.position, two.assembly.position) == (4, 5)
    assert [world.written(owner) for owner in (one, two)] == [
        b"".join(found.where for found in world.wal.batches[owner.key]) for owner in (one, two)
    ]


async def test_a_full_disk_is_relieved_of_the_largest(world: World) -> None:
    small, large = world.lead(0), world.lead(1)
    await world.produce(small)
    await world.produce(large, times=3)
    world.files.is_full = True
    await world.produce(small)
    # Not even its indexes could be written.
    assert large.losses
    assert not small.losses
    assert world.assembler.used_bytes == SIZE


async def test_an_object_that_cannot_be_read_delays_its_partitions_only(world: World) -> None:
    one, two = world.lead(0), world.lead(1)
    world.wal.commit(one.key)
    world.wal.unreadable.add("o000001")
    await world.produce(two)
    world.told(one)
    await world.round()
    assert (one.assembly.position, two.assembly.position) == (0, 1)
    reads = len(world.wal.gets)
    await world.assembler.work()
    assert len(world.wal.gets) == reads
    world.wal.unreadable.clear()
    world.clock.advance(60_000)
    await world.assembler.work()
    assert one.assembly.position == 1
    assert one.losses == []


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
async def test_a_coordinator_that_moves_costs_nothing_of_what_is_there(
    world: World, error: ErrorCode
) -> None:
    one = world.lead()
    await world.produce(one, times=3)
    world.wal.errors[one.key] = error
    await world.produce(one)
    assert (one.assembly.position, one.losses) == (3, [])
    world.wal.errors.clear()
    world.clock.advance(60_000)
    await world.assembler.work()
    assert one.assembly.position == 4


async def test_a_plane_that_fails_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world.lead()

    async def fail(*_: object) -> list[Found]:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    with monkeypatch.context() as patched:
        patched.setattr(world.wal, "find", fail)
        await world.produce(one)
    world.clock.advance(60_000)
    await world.assembler.work()
    assert one.assembly.position == 1


async def test_records_deleted_before_they_were_read_begin_anew(world: World) -> None:
    one = world.lead()
    await world.produce(one, times=2)
    world.wal.starts[one.key] = 4
    await world.produce(one, times=4)
    assert one.losses
    world.clock.advance(1000)
    await world.round()
    assert one.assembly.begins_at == 4
    assert one.assembly.position == 6
    assert world.files_there() == ["00000000000000000004.log"]


async def test_batches_that_do_not_follow_are_refused(world: World) -> None:
    one = world.lead()
    await world.produce(one)
    world.wal.commit(one.key)
    wrong = bytearray(world.wal.batches[one.key][1].where)
    patch_offset(wrong, 7, 0)
    found = world.wal.batches[one.key][1]
    world.wal.batches[one.key][1] = found._replace(where=bytes(wrong))
    world.told(one)
    await world.round()
    assert one.losses
    assert one.assembly.position == 0


async def test_a_loss_of_leadership_in_the_midst_of_a_round_leaves_no_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = world.lead(0), world.lead(1)
    await world.produce(one, two)
    read = world.wal.read

    async def deposed(batches: Sequence[Sequence[WalBatch]]) -> list[Records]:
        world.assembler.drop(one.assembly)
        return await read(batches)

    monkeypatch.setattr(world.wal, "read", deposed)
    await world.produce(one, two)
    assert two.assembly.position == 2
    assert one.cuts == 0
    assert len(world.files_there()) == 1
    assert world.assembler.used_bytes == 2 * SIZE


def test_a_start_drops_what_was_there_and_leaves_what_is_not_ours(tmp_path: Path) -> None:
    ours = tmp_path / "orders-3.17"
    ours.mkdir()
    (ours / "00000000000000000000.log").write_bytes(b"half")
    foreign, note = tmp_path / "photos", tmp_path / "README"
    foreign.mkdir()
    note.write_text("hello")
    elsewhere = tmp_path.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    link = tmp_path / "orders-4.1"
    link.symlink_to(elsewhere)
    remove_leftovers(tmp_path)
    assert not ours.exists()
    assert foreign.is_dir()
    assert note.read_text() == "hello"
    assert link.is_symlink()
    assert (elsewhere / "kept").read_text() == "kept"
    assert elsewhere.is_dir()
