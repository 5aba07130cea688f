"""Pruning the WAL below remote segments: when, how far, and all that keeps it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import PRUNED_SEGMENTS_PER_PASS_MAX
from skylog.log.epochs import LeaderEpochs
from skylog.objects.faulty import FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.objects.store import NotFound, ObjectError, Outcome
from skylog.tiered.consolidation.prune import Extent, PrunePass
from skylog.tiered.consolidation.read_back import read_back
from skylog.tiered.counts import TieredCounts
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition
from skylog.tiered.storage import DamagedSegment, ObjectRemoteStorage
from tests.unit.tiered.remote_records import PARTITION, TOPIC, History, segment

DELAY_MS = 300_000
INTERVAL_MS = 60_000
OTHER = TopicIdPartition(Uuid(b"another topic id"), 3)


@dataclass
class Led:
    """A partition that is led here, and what its coordinator has."""

    partition: TopicIdPartition = PARTITION
    topic: str = TOPIC
    leader_epoch: int = 4
    epochs: LeaderEpochs = field(default_factory=lambda: LeaderEpochs([(0, 0)]))
    wal_start: int = 0
    high_watermark: int = 1000
    error: ErrorCode = ErrorCode.NONE
    is_known: bool = True


class TwoClocks(ManualClock):
    """The clock on the wall may be set while the monotonic one goes on."""

    wall_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.wall_ms

    def monotonic(self) -> float:
        return super().now_ms() / 1000


class Prune:
    """A pass over a few partitions, with a coordinator and a store that do what tests want."""

    def __init__(self, *led: Led, delay_ms: int = DELAY_MS) -> None:
        self.led = list(led) or [Led()]
        self.histories = {one.partition: History() for one in self.led}
        for key, history in self.histories.items():
            history.log = RemoteLog(key, TOPIC)
        self.hidden: set[TopicIdPartition] = set()
        self.clock = TwoClocks()
        self.counts = TieredCounts(self.clock)
        self.obstacle: str | None = None
        self.pruned: list[tuple[TopicIdPartition, int]] = []
        self.damaged: dict[bytes, Exception] = {}
        self.read: list[bytes] = []
        # Called while a segment is read back, and before the answer of the coordinators.
        self.meanwhile: Callable[[], object] = lambda: None
        self.before_answer: Callable[[], object] = lambda: None
        self.coordinator_error: KafkaError | None = None
        self.work = PrunePass(
            self,  # type: ignore[arg-type]
            _Pruner(self),
            self.read_back,
            self.clock,
            self.counts,
            delay_ms=delay_ms,
        )

    @property
    def history(self) -> History:
        return self.histories[PARTITION]

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return None if partition in self.hidden else self.histories[partition].log

    def copied(self, *segments: RemoteSegment) -> None:
        """Some time after the last pass."""
        self.clock.advance(INTERVAL_MS)
        self.history.copied(*segments)

    async def read_back(self, one: RemoteSegment) -> None:
        self.read.append(one.id)
        await asyncio.sleep(0)
        self.meanwhile()
        if one.id in self.damaged:
            raise self.damaged[one.id]

    async def passes(self, count: int = 1) -> list[int]:
        """What was pruned, by passes a delay apart; the first is at once."""
        for number in range(count):
            if number:
                self.clock.advance(DELAY_MS)
            await self.work.run_once()
        return [offset for _, offset in self.pruned]


class _Pruner:
    def __init__(self, world: Prune) -> None:
        self._world = world

    def led(self) -> Iterable[Led]:
        return [one for one in self._world.led if one.leader_epoch >= 0]

    def obstacle(self) -> str | None:
        return self._world.obstacle

    def _of(self, partition: TopicIdPartition) -> Led:
        return next(one for one in self._world.led if one.partition == partition)

    async def extents(self, partitions: Sequence[TopicIdPartition]) -> Sequence[Extent | None]:
        await asyncio.sleep(0)
        self._world.before_answer()
        if self._world.coordinator_error is not None:
            raise self._world.coordinator_error
        return [
            Extent(one.wal_start, one.high_watermark) if one.is_known else None
            for one in map(self._of, partitions)
        ]

    async def prune_to(
        self, targets: Sequence[tuple[TopicIdPartition, int]]
    ) -> Sequence[ErrorCode]:
        await asyncio.sleep(0)
        results = []
        for partition, offset in targets:
            one = self._of(partition)
            assert offset <= one.high_watermark
            if not one.error:
                self._world.pruned.append((one.partition, offset))
                one.wal_start = max(one.wal_start, offset)
            results.append(one.error)
        return results


THREE = [segment(number, number * 100, number * 100 + 99) for number in range(3)]


# -- when ------------------------------------------------------------------------------------------


async def test_all_that_was_finished_for_the_delay_is_pruned() -> None:
    prune = Prune()
    prune.copied(*THREE)
    assert await prune.passes() == []
    prune.clock.advance(DELAY_MS - 1)
    assert await prune.passes() == []
    prune.clock.advance(1)
    assert await prune.passes() == [300]
    assert prune.read == [one.id for one in THREE]
    assert await prune.passes(3) == [300]  # and not again
    assert prune.counts.prune.errors == 0


async def test_the_delay_counts_from_when_this_broker_knows_a_segment() -> None:
    """Whatever time its record names."""
    prune = Prune()
    assert await prune.passes(10) == []
    prune.copied(replace(THREE[0], event_timestamp_ms=-(10**15)))
    assert await prune.passes() == []
    prune.clock.advance(200_000)
    prune.copied(replace(THREE[1], event_timestamp_ms=-(10**15)))
    assert await prune.passes() == []
    prune.clock.advance(100_000)
    assert await prune.passes() == [100]
    prune.clock.advance(199_999)
    assert await prune.passes() == [100]
    prune.clock.advance(1)
    assert await prune.passes() == [100, 200]


async def test_the_delay_does_not_go_by_the_clock_on_the_wall() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.wall_ms = 10**12
    assert await prune.passes() == []
    prune.clock.wall_ms = -(10**12)
    prune.clock.advance(DELAY_MS)
    assert await prune.passes() == [300]


async def test_a_restart_begins_the_delay_anew() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    again = Prune(prune.led[0])
    again.histories = prune.histories
    assert await again.passes() == []
    assert await again.passes(2) == [300]


async def test_a_partition_that_was_led_elsewhere_begins_anew() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.led[0].leader_epoch = -1
    assert await prune.passes(2) == []
    prune.led[0].leader_epoch = 9
    assert await prune.passes() == []
    assert await prune.passes(2) == [300]


async def test_a_remote_log_that_is_read_anew_begins_anew() -> None:
    """Its ranks are others: a young segment might look like an old one."""
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    old, prune.histories[PARTITION] = prune.history, History()
    for record in old.records:
        prune.history.add(record)
    assert await prune.passes() == []
    assert await prune.passes(2) == [300]


async def test_passes_that_follow_each_other_closely() -> None:
    """However often it is called, a segment is pruned a delay after it was finished, and not much
    later."""
    prune = Prune(delay_ms=16_000)
    for second in range(60):
        number = second // 4
        if second % 4 == 0:
            prune.history.copied(segment(number, number * 10, number * 10 + 9))
        await prune.passes()
        ripe = max(0, (second - 16) // 4 + 1)
        assert (prune.pruned[-1][1] if prune.pruned else 0) == ripe * 10, second
        prune.clock.advance(1_000)


# -- how far ---------------------------------------------------------------------------------------


async def test_a_gap_ends_the_run() -> None:
    prune = Prune()
    prune.copied(THREE[0], THREE[2])
    assert await prune.passes(2) == [100]
    prune.copied(THREE[1])
    assert await prune.passes(2) == [100, 300]


async def test_segments_before_the_wal_start_do_not_count() -> None:
    prune = Prune(Led(wal_start=150))
    prune.copied(THREE[0], THREE[2])
    assert await prune.passes(2) == []
    prune.copied(THREE[1])
    assert await prune.passes(2) == [300]


async def test_what_is_being_copied_or_deleted_is_not_there() -> None:
    prune = Prune()
    prune.copied(THREE[0])
    prune.history.started(THREE[1])
    assert await prune.passes(2) == [100]
    prune.copied(THREE[2])
    assert prune.history.update(THREE[2], SegmentState.DELETE_STARTED)
    assert prune.history.finished(THREE[1])
    assert await prune.passes(2) == [100, 200]


async def test_a_void_record_of_an_older_leader_is_none() -> None:
    prune = Prune()
    prune.history.started(replace(THREE[0], copier_epoch=3))
    prune.history.started(replace(THREE[1], copier_epoch=4))
    prune.history.finished(THREE[0], 3)
    assert await prune.passes(3) == []


async def test_segments_of_another_epoch_are_none() -> None:
    prune = Prune()
    prune.copied(segment(1, 0, 99, ((1, 0),)))
    assert await prune.passes(3) == []


async def test_every_segment_that_is_read_from_is_read_back() -> None:
    """Two leaders have copied the same offsets: readers take the one that reaches furthest."""
    prune = Prune()
    long, inner = segment(1, 0, 199), segment(2, 50, 199)
    last = segment(3, 150, 299)
    prune.copied(long, inner, last)
    prune.damaged[inner.id] = NotFound("gone")
    assert await prune.passes(2) == [200]
    assert inner.id in prune.read
    del prune.damaged[inner.id]
    assert await prune.passes() == [200, 300]


async def test_a_younger_segment_in_the_place_of_an_old_one_must_ripen() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    prune.copied(segment(9, 100, 250))
    assert await prune.passes() == [100]
    assert await prune.passes(2) == [100, 300]


async def test_a_long_run_is_pruned_in_several_passes() -> None:
    prune = Prune(Led(high_watermark=10_000))
    count = PRUNED_SEGMENTS_PER_PASS_MAX
    prune.copied(*(segment(number, number * 10, number * 10 + 9) for number in range(count * 2)))
    assert await prune.passes(2) == [count * 10]
    assert await prune.passes() == [count * 10, count * 20]


async def test_several_partitions_each_for_itself() -> None:
    one, two, three = Led(), Led(OTHER), Led(OTHER._replace(partition_index=4), is_known=False)
    prune = Prune(one, two, three)
    for number, key in enumerate(prune.histories):
        prune.histories[key].copied(segment(number, 0, 99), segment(number + 10, 100, 199))
    prune.damaged[segment(11, 100, 199).id] = DamagedSegment("cut")
    await prune.passes(2)
    assert prune.pruned == [(one.partition, 200), (two.partition, 100)]
    assert prune.counts.prunes_refused == 1


# -- what keeps the WAL ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [NotFound("no manifest"), DamagedSegment("of another size")])
async def test_a_segment_that_is_not_whole_keeps_the_wal(
    fault: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    prune = Prune()
    prune.copied(*THREE)
    prune.damaged[THREE[1].id] = fault
    assert await prune.passes(5) == [100]
    assert prune.counts.prunes_refused == 1
    assert THREE[2].id not in prune.read
    assert capsys.readouterr().err.count("ERROR") == 1
    prune.damaged.clear()  # an operator has brought it back
    assert await prune.passes() == [100, 300]
    assert prune.counts.prunes_refused == 0


async def test_a_store_that_does_not_answer_keeps_the_wal() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    for error in (ObjectError("503", Outcome.NOT_DONE), TimeoutError()):
        prune.damaged[THREE[2].id] = error
        with pytest.raises(type(error)):
            await prune.passes()
    # What was read back before is pruned all the same; it is said that the pass failed.
    assert prune.pruned[0] == (PARTITION, 200)
    assert prune.counts.prune.errors == 2
    assert prune.counts.prunes_refused == 0
    prune.damaged.clear()
    assert (await prune.passes())[-1] == 300


async def test_others_do_not_wait_for_a_store_that_is_away() -> None:
    many = [Led(OTHER._replace(partition_index=number)) for number in range(200)]
    prune = Prune(*many)
    for number, key in enumerate(prune.histories):
        prune.histories[key].copied(segment(number, 0, 99))
        prune.damaged[segment(number, 0, 99).id] = TimeoutError()
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    with pytest.raises(TimeoutError):
        await prune.passes()
    assert len(prune.read) < 20
    assert prune.pruned == []


async def test_nothing_is_pruned_while_the_backup_fails() -> None:
    prune = Prune()
    prune.copied(*THREE)
    prune.obstacle = "no backup"
    assert await prune.passes(5) == []
    assert prune.read == []
    prune.obstacle = None
    assert await prune.passes() == [300]


async def test_an_unknown_remote_log_keeps_the_wal() -> None:
    prune = Prune()
    prune.copied(*THREE)
    prune.hidden.add(PARTITION)
    assert await prune.passes(3) == []
    prune.hidden.clear()
    assert await prune.passes() == []
    assert await prune.passes(2) == [300]


async def test_coordinators_that_do_not_answer_keep_the_wal() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    prune.coordinator_error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        await prune.passes()
    prune.coordinator_error = None
    prune.led[0].is_known = False
    assert await prune.passes() == []
    prune.led[0].is_known = True
    prune.led[0].error = ErrorCode.NOT_COORDINATOR
    assert await prune.passes() == []
    prune.led[0].error = ErrorCode.NONE
    assert await prune.passes() == [300]


async def test_a_leader_that_is_deposed_while_it_reads_back_does_not_prune() -> None:
    for later in (-1, 7):
        prune = Prune()
        prune.copied(*THREE)
        await prune.passes()
        prune.clock.advance(DELAY_MS)

        def depose(prune: Prune = prune, later: int = later) -> None:
            prune.led[0].leader_epoch = later

        prune.meanwhile = depose
        assert await prune.passes() == []
        assert prune.read


async def test_segments_that_go_while_they_are_read_back_do_not_count() -> None:
    """By DeleteRecords: the log start has passed them."""
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)

    def delete() -> None:
        prune.meanwhile = lambda: None
        prune.history.update(THREE[0], SegmentState.DELETE_STARTED)

    prune.meanwhile = delete
    assert await prune.passes() == []


async def test_a_remote_log_that_is_forgotten_while_it_is_read_back_does_not_count() -> None:
    prune = Prune()
    prune.copied(*THREE)
    await prune.passes()
    prune.clock.advance(DELAY_MS)
    prune.meanwhile = lambda: prune.hidden.add(PARTITION)
    assert await prune.passes() == []


async def test_segments_above_the_high_watermark_are_of_another_history(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A coordinator that was restored commits other records at their offsets: these are only in
    the WAL, however long the segments have been there."""
    prune = Prune(Led(high_watermark=150))
    prune.copied(*THREE)
    assert await prune.passes(2) == [100]
    prune.led[0].high_watermark = 1000
    assert await prune.passes(5) == [100]
    assert capsys.readouterr().err.count("ERROR") == 1


async def test_a_segment_that_is_finished_while_the_high_watermark_is_asked_for() -> None:
    """It may end above an answer that was on its way."""
    prune = Prune(Led(high_watermark=100))
    prune.copied(THREE[0])
    await prune.passes()

    def grow() -> None:
        prune.before_answer = lambda: None
        prune.copied(THREE[1])

    prune.before_answer = grow
    assert await prune.passes() == []
    prune.led[0].high_watermark = 200
    assert await prune.passes(3) == [200]


# -- read back from a store ------------------------------------------------------------------------

LOG = random.Random(3).randbytes(5000)
SEGMENT = segment(1, 0, 99, size=len(LOG), txn_index_empty=True)
LAYOUTS: list[Layout] = [AivenLayout(chunk_size=300), LocalTieredLayout()]


async def stored(tmp_path: Path, layout: Layout) -> tuple[MemoryStore, ObjectRemoteStorage]:
    for name, data in (("log", LOG), ("index", b"offsets"), ("time", b"times"), ("snap", b"s")):
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in ("log", "index", "time")]
    files = SegmentFiles(*paths, None, str(tmp_path / "snap"), b"0\n0\n")
    store = MemoryStore()
    storage = ObjectRemoteStorage(store, layout, InlineExecutor())
    await storage.copy(SEGMENT, files)
    return store, storage


@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
async def test_what_was_copied_is_whole(tmp_path: Path, layout: Layout) -> None:
    _, storage = await stored(tmp_path, layout)
    await read_back(storage, SEGMENT)


@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
async def test_each_object_must_be_there(tmp_path: Path, layout: Layout) -> None:
    store, storage = await stored(tmp_path, layout)
    await storage.fetch(SEGMENT, 0, 10)  # what is kept of the manifest does not count
    keys = [info.key async for info in store.list("")]
    assert len(keys) >= 3
    for key in keys:
        data = await store.get(key)
        await store.delete_many([key])
        with pytest.raises(NotFound):
            await read_back(storage, SEGMENT)
        await store.put(key, data)
    await read_back(storage, SEGMENT)


@pytest.mark.parametrize("change", [-1, 1, -5000])
@pytest.mark.parametrize("layout", LAYOUTS, ids=["aiven", "kafka-local"])
async def test_a_log_of_another_size(tmp_path: Path, layout: Layout, change: int) -> None:
    store, storage = await stored(tmp_path, layout)
    await replace_object(store, layout.log_key(SEGMENT), (LOG + b"x")[: len(LOG) + change])
    with pytest.raises(DamagedSegment):
        await read_back(storage, SEGMENT)


async def test_indexes_that_are_cut(tmp_path: Path) -> None:
    store, storage = await stored(tmp_path, LAYOUTS[0])
    key = LAYOUTS[0].index_key(SEGMENT, IndexType.OFFSET)
    await replace_object(store, key, (await store.get(key))[:-1])
    with pytest.raises(DamagedSegment):
        await read_back(storage, SEGMENT)


@pytest.mark.parametrize("path", ["size", "end", "id", "index", "json", "empty"])
async def test_a_manifest_that_says_something_else(tmp_path: Path, path: str) -> None:
    store, storage = await stored(tmp_path, LAYOUTS[0])
    key = AivenLayout().manifest_key(SEGMENT)
    told = json.loads(await store.get(key))
    described = told["remoteLogSegmentMetadata"]
    match path:
        case "size":
            told["chunkIndex"]["originalFileSize"] -= 1
        case "end":
            described["endOffset"] = 98
        case "id":
            described["remoteLogSegmentId"]["id"] = str(Uuid(b"another segment!"))
        case "index":
            told["segmentIndexes"]["transaction"] = None
    data = {"json": b"{", "empty": b""}.get(path) or json.dumps(told).encode()
    await replace_object(store, key, b"" if path == "empty" else data)
    of = replace(SEGMENT, txn_index_empty=False) if path == "index" else SEGMENT
    with pytest.raises(DamagedSegment):
        await read_back(storage, of)


async def test_a_store_that_is_down_says_nothing(tmp_path: Path) -> None:
    store, _ = await stored(tmp_path, LAYOUTS[0])
    faulty = FaultyStore(store, random.Random(1))
    faulty.down = True
    storage = ObjectRemoteStorage(faulty, LAYOUTS[0], InlineExecutor())
    with pytest.raises(ObjectError) as raised:
        await read_back(storage, SEGMENT)
    assert not isinstance(raised.value, NotFound | DamagedSegment)


async def replace_object(store: MemoryStore, key: ObjectKey, data: bytes) -> None:
    await store.delete_many([key])
    await store.put(key, data)
