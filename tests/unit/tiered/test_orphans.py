"""Which objects are orphans: none that may be needed, and in the end all others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.objects.claim import BucketClaim
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.holds import Hold, put_hold
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.objects.store import ObjectError
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from skylog.tiered.orphans import KnownSegments, OrphanScanner, Rest, needed
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.segments import RemoteSegment, TopicIdPartition
from skylog.tiered.storage import ObjectRemoteStorage
from skylog.tiered.stored import stored_segments
from tests.unit.tiered.remote_segments import remote_segment

GRACE_MS = 86_400_000
LAYOUTS: list[Layout] = [AivenLayout(), LocalTieredLayout()]


class World:
    """A store, and leaders that say what they know."""

    def __init__(self, layout: Layout, tmp_path: Path) -> None:
        self.clock = ManualClock()
        self.clock.advance(10 * GRACE_MS)
        self.memory = MemoryStore(self.clock)
        self.storage = ObjectRemoteStorage(self.memory, layout, InlineExecutor())
        self.topics = {remote_segment().partition.topic_id}
        self.known: dict[TopicIdPartition, KnownSegments | None] = {}
        self.asked: list[TopicIdPartition] = []
        self.claim = BucketClaim(self.memory, "mine")
        self._path = tmp_path
        for name in ("log", "index"):
            (tmp_path / name).write_bytes(b"0123456789")

    def scanner(self) -> OrphanScanner:
        return OrphanScanner(self.claim, self, self.clock, grace_ms=GRACE_MS)

    def topic_exists(self, topic_id: Uuid) -> bool:
        return topic_id in self.topics

    async def known_segments(self, partition: TopicIdPartition) -> KnownSegments | None:
        self.asked.append(partition)
        answer = self.known.get(partition, KnownSegments(frozenset(), 0, [(0, 10**9)]))
        if answer is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here")
        return answer

    async def put(self, number: int, **changes: object) -> RemoteSegment:
        segment = remote_segment(id=Uuid(bytes([number]) * 16), size=10, **changes)
        index = str(self._path / "index")
        files = SegmentFiles(str(self._path / "log"), index, index, None, index, b"0\n0\n")
        await self.storage.copy(segment, files)
        return segment

    async def left(self) -> set[int]:
        return {segment.id[0] async for segment in stored_segments(self.memory)}


@pytest.fixture(params=LAYOUTS, ids=["aiven", "kafka-local"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


def knows(*segments: RemoteSegment, start: int = 0, end: int = 10**9) -> KnownSegments:
    return KnownSegments(frozenset(one.id for one in segments), start, [(start, end)])


async def test_what_the_leader_knows_stays_and_the_rest_goes_after_the_grace(world: World) -> None:
    """# T15"""
    mine = await world.put(1)
    for number in (2, 3):
        await world.put(number, start_offset=number * 1000, end_offset=number * 1000 + 5)
    other = await world.put(4, partition=TopicIdPartition(mine.partition.topic_id, 7))
    world.known = {mine.partition: knows(mine), other.partition: knows(other)}
    scanner = world.scanner()
    await scanner.run_once()
    assert await world.left() == {1, 2, 3, 4}
    world.clock.advance(GRACE_MS - 1)
    await scanner.run_once()
    assert await world.left() == {1, 2, 3, 4}
    world.clock.advance(1)
    report = await scanner.scan(delete=False)
    assert (report.scanned, report.orphans) == (4, 2)
    assert [segment.id[0] for segment in report.shown] == [2, 3]
    assert await world.left() == {1, 2, 3, 4}
    await scanner.run_once()
    assert await world.left() == {1, 4}
    assert scanner.stats.deleted == 2
    assert world.asked.count(mine.partition) == 4  # once in each scan


async def test_a_leader_that_does_not_answer_keeps_its_objects(world: World) -> None:
    silent = await world.put(1)
    other = await world.put(2, partition=TopicIdPartition(silent.partition.topic_id, 7))
    world.known = {silent.partition: None, other.partition: knows()}
    world.clock.advance(2 * GRACE_MS)
    report = await world.scanner().scan(delete=True)
    assert (report.unanswered, report.orphans) == (1, 1)
    assert await world.left() == {1}


async def test_a_topic_must_be_missing_for_a_whole_grace(world: World) -> None:
    segment = await world.put(1)
    world.topics.clear()
    world.clock.advance(5 * GRACE_MS)
    scanner = world.scanner()
    for _ in range(3):
        await scanner.run_once()
        assert await world.left() == {1}
        world.clock.advance(GRACE_MS // 3)
    world.topics.add(segment.partition.topic_id)
    world.known[segment.partition] = knows(segment)
    await scanner.run_once()  # it was only late
    world.topics.clear()
    await scanner.run_once()
    world.clock.advance(GRACE_MS - 1)
    await scanner.run_once()
    assert await world.left() == {1}
    world.clock.advance(1)
    await scanner.run_once()
    assert await world.left() == set()


async def test_a_new_caretaker_waits_for_its_own_grace(world: World) -> None:
    await world.put(1)
    world.topics.clear()
    world.clock.advance(5 * GRACE_MS)
    await world.scanner().run_once()
    world.clock.advance(2 * GRACE_MS)
    await world.scanner().run_once()
    assert await world.left() == {1}


async def test_nothing_is_deleted_within_a_hold(world: World) -> None:
    await world.put(1)
    before = world.clock.now_ms()
    world.clock.advance(1000)
    await world.put(2, start_offset=2000, end_offset=2001)
    await put_hold(world.memory, Hold(before + 1, before + 5000))
    world.clock.advance(2 * GRACE_MS)
    report = await world.scanner().scan(delete=True)
    assert (report.held, report.orphans) == (1, 1)
    assert await world.left() == {2}


async def test_what_is_held_is_told_at_once_and_what_is_known_is_not_held(world: World) -> None:
    await world.put(1)
    known = await world.put(2, start_offset=2000, end_offset=2001)
    world.known = {known.partition: knows(known)}
    now = world.clock.now_ms()
    await put_hold(world.memory, Hold(now - 1, now + 1))
    report = await world.scanner().scan(delete=True)
    assert (report.held, [one.id[0] for one in report.kept]) == (1, [1])


async def test_without_the_claim_nothing_is_looked_at(world: World) -> None:
    await world.put(1)
    await BucketClaim(world.memory, "theirs").require()
    world.clock.advance(2 * GRACE_MS)
    with pytest.raises(StorageError, match="belongs to cluster 'theirs'"):
        await world.scanner().run_once()
    assert await world.left() == {1}
    assert world.asked == []


async def test_the_only_copy_of_offsets_is_kept_though_unknown(world: World) -> None:
    """A metadata topic that was lost must not take the records with it."""
    segment = await world.put(1, start_offset=100, end_offset=199)
    world.clock.advance(2 * GRACE_MS)
    for ranges, expected in (
        ([], {1}),
        ([(0, 100)], {1}),
        ([(101, 500)], {1}),
        ([(0, 150), (151, 500)], {1} if isinstance(world.storage.layout, AivenLayout) else set()),
    ):
        await world.put(1, start_offset=100, end_offset=199)
        world.clock.advance(2 * GRACE_MS)
        world.known[segment.partition] = KnownSegments(frozenset(), 0, ranges)
        scanner = world.scanner()
        await scanner.run_once()
        assert await world.left() == expected
        assert scanner.stats.needed == len(expected)
    for covered in (
        KnownSegments(frozenset(), 0, [(150, 500), (0, 150)]),
        KnownSegments(frozenset(), 200, []),  # below the log start: no reader needs it
    ):
        await world.put(1, start_offset=100, end_offset=199)
        world.clock.advance(2 * GRACE_MS)
        world.known[segment.partition] = covered
        await world.scanner().run_once()
        assert await world.left() == set()


async def test_a_segment_without_manifest_was_never_whole(tmp_path: Path) -> None:
    world = World(AivenLayout(), tmp_path)
    segment = await world.put(1, start_offset=100, end_offset=199)
    manifest = AivenLayout().manifest_key(segment)
    world.known[segment.partition] = KnownSegments(frozenset(), 0, [])
    world.clock.advance(2 * GRACE_MS)
    await world.memory.put(manifest, b"not a manifest")
    world.clock.advance(2 * GRACE_MS)
    await world.scanner().run_once()
    assert await world.left() == {1}
    await world.memory.delete_many([manifest])
    await world.scanner().run_once()
    assert await world.left() == set()


async def test_other_objects_are_not_looked_at(world: World) -> None:
    await world.memory.put(ObjectKey.named("backup", "node-1", "x"), b"")
    await world.memory.put(ObjectKey.new("wal", 1, random.Random(1)), b"")
    world.clock.advance(2 * GRACE_MS)
    report = await world.scanner().scan(delete=True)
    assert report.scanned == 0
    assert len([info async for info in world.memory.list("")]) == 3  # and the claim


async def test_a_store_that_fails_loses_nothing_that_is_known(world: World) -> None:
    segments = [
        await world.put(number, start_offset=number * 10, end_offset=number * 10 + 9)
        for number in range(20)
    ]
    world.known[segments[0].partition] = knows(*segments[::2])
    world.clock.advance(2 * GRACE_MS)
    for seed in range(40):
        faulty = FaultyStore(
            world.memory,
            random.Random(seed),
            Faults(before=0.02, unclear=0.02, after=0.02, truncated=0.02, partial_delete=0.02),
        )
        claim = BucketClaim(faulty, "mine")
        scanner = OrphanScanner(claim, world, world.clock, grace_ms=GRACE_MS)
        try:
            await scanner.run_once()
        except (ObjectError, StorageError):
            continue
        assert set(range(0, 20, 2)) <= await world.left()
    await world.scanner().run_once()
    assert await world.left() == set(range(0, 20, 2))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 10),
)
def test_needed_is_what_a_set_says(
    ranges: list[tuple[int, int]], log_start: int, start: int, length: int
) -> None:
    known = KnownSegments(frozenset(), log_start, ranges)
    had = {offset for first, behind in ranges for offset in range(first, behind)}
    wanted = {offset for offset in range(start, start + length + 1) if offset >= log_start}
    assert needed(start, start + length, known) == bool(wanted - had)


async def test_segments_are_found_with_all_their_objects(world: World) -> None:
    first = await world.put(1, start_offset=5, end_offset=9)
    await world.put(2, start_offset=10, end_offset=19)
    found = [segment async for segment in stored_segments(world.memory)]
    assert [(one.id[0], one.start_offset, one.topic) for one in found] == [
        (1, 5, "topic1"),
        (2, 10, "topic1"),
    ]
    assert found[0].partition == first.partition
    infos = [info async for info in world.memory.list("")]
    assert sum(len(one.objects) for one in found) == len(infos)
    if found[0].manifest is not None:
        assert found[0].in_deletion_order[0] == found[0].manifest


async def test_a_scan_rests_before_each_partition_by_a_measure_of_its_own(world: World) -> None:
    for index in range(3):
        await world.put(index + 1, partition=TopicIdPartition(remote_segment().partition[0], index))
    begun, rested = [], []

    def rests() -> Rest:
        begun.append(world.clock.now_ms())

        async def rest() -> None:
            rested.append(world.clock.now_ms())

        return rest

    scanner = OrphanScanner(world.claim, world, world.clock, grace_ms=GRACE_MS, rests=rests)
    world.clock.advance(5 * GRACE_MS)  # long after it was made
    await scanner.scan(delete=False)
    assert begun == [world.clock.now_ms()]
    assert len(rested) == 3
