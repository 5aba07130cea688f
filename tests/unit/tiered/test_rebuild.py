"""Metadata from manifests: the same answers as before, whatever a backup has missed. # T13"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.objects.store import ObjectError
from skylog.objects.store import Outcome as StoreOutcome
from skylog.tiered.layout.plan import AivenLayout, LocalTieredLayout
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.records import segment_started, segment_updated
from skylog.tiered.ports import MetadataPage, SegmentFiles
from skylog.tiered.rebuild import RebuiltLogs, RestoredLog, rebuild_logs, write_metadata
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.tiered.storage import ObjectRemoteStorage
from skylog.wire.metadata_records import decode_remote_log
from skylog.wire.schema import Message
from tests.unit.tiered.remote_segments import TOPIC_ID, remote_segment

PARTITIONS = [TopicIdPartition(TOPIC_ID, index) for index in range(3)]


def segment(number: int, partition: TopicIdPartition, start: int, end: int) -> RemoteSegment:
    return remote_segment(
        id=Uuid(number.to_bytes(16, "big")),
        partition=partition,
        start_offset=start,
        end_offset=end,
        epochs=((3, start),),
        size=10,
        txn_index_empty=True,
        copier_epoch=7,
    )


class History:
    """Segments are copied, and deleted from the start; after each step the metadata is noted."""

    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        self.storage = ObjectRemoteStorage(self.store, AivenLayout(), InlineExecutor())
        self.logs = {partition: RemoteLog(partition, "topic1") for partition in PARTITIONS}
        self.offset = 0
        self.backups: list[dict[TopicIdPartition, RemoteLog]] = []
        for name in ("log", "index"):
            (folder / name).write_bytes(b"0123456789")
        index = str(folder / "index")
        self.files = SegmentFiles(str(folder / "log"), index, index, None, index, b"0\n0\n")

    def publish(self, partition: TopicIdPartition, record: Message) -> None:
        assert self.logs[partition].apply(record, self.offset) is Outcome.EFFECTIVE
        self.offset += 1
        self.back_up()

    def back_up(self) -> None:
        self.backups.append(
            {partition: RemoteLog.restored(*log.snapshot()) for partition, log in self.logs.items()}
        )

    def update(self, one: RemoteSegment, state: SegmentState, log_start: int = -1) -> None:
        self.publish(
            one.partition,
            segment_updated(
                one, state, broker_id=2, now_ms=9, copier_epoch=7, log_start_offset=log_start
            ),
        )

    async def copy(self, one: RemoteSegment) -> None:
        self.publish(one.partition, segment_started(one))
        await self.storage.copy(one, self.files)
        self.back_up()
        self.update(one, SegmentState.COPY_FINISHED)

    async def delete(self, one: RemoteSegment) -> None:
        self.update(one, SegmentState.DELETE_STARTED, one.end_offset + 1)
        await self.storage.delete(one)
        self.back_up()
        self.update(one, SegmentState.DELETE_FINISHED)


async def history(folder: Path, seed: int) -> History:
    made, rng = History(folder), random.Random(seed)
    ends = dict.fromkeys(PARTITIONS, 0)
    alive: dict[TopicIdPartition, list[RemoteSegment]] = {one: [] for one in PARTITIONS}
    for number in range(1, 15):
        partition = rng.choice(PARTITIONS)
        if alive[partition] and rng.random() < 0.3:
            await made.delete(alive[partition].pop(0))
            continue
        end = ends[partition] + rng.randrange(1, 50)
        one = segment(number, partition, ends[partition], end - 1)
        ends[partition] = end
        await made.copy(one)
        alive[partition].append(one)
    return made


def replayed(rebuilt: RebuiltLogs, count: int = 50) -> dict[TopicIdPartition, RemoteLog]:
    """What every broker makes of the rebuilt topic."""
    logs: dict[TopicIdPartition, RemoteLog] = {}
    for number, values in rebuilt.values(count).items():
        for offset, value in enumerate(values):
            record = decode_remote_log(value)
            owner = record.remote_log_segment_id.topic_id_partition
            partition = TopicIdPartition(owner.id, owner.partition)
            assert metadata_partition(partition, count) == number
            log = logs.setdefault(partition, RemoteLog(partition, owner.name))
            assert log.apply(record, offset) is Outcome.EFFECTIVE
    return logs


def finished(log: RemoteLog | None) -> list[RemoteSegment]:
    return [
        replace(one, copier_epoch=-1, event_timestamp_ms=0, broker_id=0)
        for one in (log.all() if log else ())
        if one.state is SegmentState.COPY_FINISHED
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_a_restore_of_every_prefix_gives_what_the_store_has(
    tmp_path: Path, seed: int
) -> None:
    """However old the backup: manifests say what is finished, so the answers are the same."""
    made = await history(tmp_path, seed)
    for backup in made.backups:
        rebuilt = await rebuild_logs(made.store, backup.values())
        logs = replayed(rebuilt)
        for partition in PARTITIONS:
            assert finished(logs.get(partition)) == finished(made.logs[partition])
            log = logs.get(partition)
            if log is not None:
                assert log.fence == -1  # the old cluster's fence is gone
                start = backup[partition].log_start
                first = finished(log)[0].start_offset
                assert log.log_start == (-1 if start == -1 else max(start, first))
        gone = {one.id for one in rebuilt.missing}
        assert all(one.state is SegmentState.COPY_FINISHED for one in rebuilt.missing)
        assert gone.isdisjoint(one.id for log in logs.values() for one in log.all())
    assert rebuilt.newer == []
    assert rebuilt.missing == []


async def test_without_a_snapshot_all_comes_from_manifests(tmp_path: Path) -> None:
    made = await history(tmp_path, 1)
    rebuilt = await rebuild_logs(made.store)
    logs = replayed(rebuilt)
    for partition in PARTITIONS:
        assert finished(logs.get(partition)) == finished(made.logs[partition])
    assert len(rebuilt.newer) == rebuilt.count


async def test_in_the_middle_of_copying_and_deleting(tmp_path: Path) -> None:
    made = History(tmp_path)
    one = segment(1, PARTITIONS[0], 0, 9)
    await made.storage.copy(one, made.files)
    layout = AivenLayout()
    await made.store.delete_many([layout.manifest_key(one)])  # killed before, or in a deletion
    rebuilt = await rebuild_logs(made.store)
    assert (rebuilt.count, rebuilt.unreadable) == (0, [])


async def test_a_manifest_alone_is_no_segment(tmp_path: Path) -> None:
    made = History(tmp_path)
    one = segment(1, PARTITIONS[0], 0, 9)
    await made.copy(one)
    await made.store.delete_many([AivenLayout().log_key(one)])
    for logs in ([], made.logs.values()):
        rebuilt = await rebuild_logs(made.store, logs)
        assert rebuilt.count == 0
        assert ["its log is not in the store" in text for text in rebuilt.unreadable] == [True]


async def test_the_newest_of_several_snapshots_counts(tmp_path: Path) -> None:
    made = await history(tmp_path, 2)
    for backups in ([made.backups[3], made.backups[-1]], [made.backups[-1], made.backups[3]]):
        logs = [log for backup in backups for log in backup.values()]
        rebuilt = await rebuild_logs(made.store, logs)
        assert rebuilt.newer == []
        assert rebuilt.log_starts == {p: made.logs[p].log_start for p in PARTITIONS}


async def test_every_node_writes_the_same(tmp_path: Path) -> None:
    made = await history(tmp_path, 3)
    backups = [made.backups[-1], made.backups[-2]]
    first = await rebuild_logs(made.store, [log for one in backups for log in one.values()])
    second = await rebuild_logs(made.store, [log for one in backups[::-1] for log in one.values()])
    assert first.values(50) == second.values(50)


async def test_what_reaches_above_the_restored_records_is_held(tmp_path: Path) -> None:
    made = History(tmp_path)
    segments = [segment(n + 1, PARTITIONS[0], n * 10, n * 10 + 9) for n in range(3)]
    for one in segments:
        await made.copy(one)
    rebuilt = await rebuild_logs(made.store, restored=lambda partition: RestoredLog(0, 20))
    assert [stored.start_offset for stored in rebuilt.held] == [20]
    assert rebuilt.count == 2


@pytest.mark.parametrize("is_there", [True, False])
async def test_what_was_put_since_is_taken_instead_of_what_no_snapshot_knows(
    tmp_path: Path, is_there: bool
) -> None:
    """Of a history that a restore ended, until its segments are cleaned."""
    made = History(tmp_path)
    clock = ManualClock()
    made.store = MemoryStore(clock)
    made.storage = ObjectRemoteStorage(made.store, AivenLayout(), InlineExecutor())
    first = segment(9, PARTITIONS[0], 0, 9)
    ended = [segment(8, PARTITIONS[0], 8, 24), segment(7, PARTITIONS[0], 25, 34)]
    await made.storage.copy(first, made.files)
    clock.advance(1000)
    for one in ended:
        await made.storage.copy(one, made.files)
    clock.advance(1000)
    since = [segment(1, PARTITIONS[0], 10, 16), segment(2, PARTITIONS[0], 15, 29)]
    for one in since:
        await made.storage.copy(one, made.files)
    wal = RestoredLog(30, 40, is_there)
    for logs in ([], [replayed_of(made, first, since[0])]):
        rebuilt = await rebuild_logs(made.store, logs, lambda partition: wal)
        spare = {one.id for one in rebuilt.spare}
        taken = [one.id for one in rebuilt.segments[PARTITIONS[0]]]
        # Without the WAL nothing else has the end of it.
        expected = ended if is_there else ended[:1]
        assert spare == {one.id for one in expected}
        assert taken == [one.id for one in (first, *since, *ended) if one.id not in spare]


def replayed_of(made: History, *segments: RemoteSegment) -> RemoteLog:
    """A snapshot that knows some of what the store has."""
    for one in segments:
        made.publish(one.partition, segment_started(one))
        state = SegmentState.COPY_FINISHED
        made.publish(one.partition, segment_updated(one, state, broker_id=1, now_ms=1))
    return made.logs[PARTITIONS[0]]


@pytest.mark.parametrize(("wal_start", "log_start"), [(0, 5), (7, 7), (10, 10), (30, 10)], ids=str)
async def test_what_is_in_neither_tier_is_below_the_log_start(
    tmp_path: Path, wal_start: int, log_start: int
) -> None:
    """A segment expired after the backup: only what the restored WAL has is left of its range."""
    made = History(tmp_path)
    segments = [segment(n + 1, PARTITIONS[0], n * 10, n * 10 + 9) for n in range(3)]
    for one in segments:
        await made.copy(one)
    made.logs[PARTITIONS[0]].log_starts = [(3, 5)]
    await made.storage.delete(segments[0])
    logs = made.logs.values()
    wal = RestoredLog(wal_start, 30)
    rebuilt = await rebuild_logs(made.store, logs, lambda partition: wal)
    assert rebuilt.log_starts[PARTITIONS[0]] == log_start
    assert [one.id for one in rebuilt.missing] == [segments[0].id]


async def test_hostile_manifests_are_told_and_left_out(tmp_path: Path) -> None:
    made = History(tmp_path)
    segments = [segment(n + 1, PARTITIONS[0], n * 10, n * 10 + 9) for n in range(3)]
    for one in segments:
        await made.copy(one)
    layout = AivenLayout()
    keys = [layout.manifest_key(one) for one in segments]
    await made.store.put(keys[0], b"garbage")
    await made.store.put(keys[1], await made.store.get(keys[2]))  # another segment's
    rebuilt = await rebuild_logs(made.store)
    assert rebuilt.count == 1
    assert len(rebuilt.unreadable) == 2
    # A snapshot that knows them does not read them.
    assert (await rebuild_logs(made.store, made.logs.values())).count == 3


async def test_a_store_that_does_not_answer_leaves_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the log would begin behind the segment, and what the store has of it would go."""
    made = History(tmp_path)
    await made.copy(segment(1, PARTITIONS[0], 0, 9))

    async def get(key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        raise ObjectError(f"{key}: 503", StoreOutcome.AMBIGUOUS)

    with monkeypatch.context() as away, pytest.raises(ObjectError, match="503"):
        away.setattr(made.store, "get", get)
        await rebuild_logs(made.store)
    assert (await rebuild_logs(made.store)).count == 1


async def test_without_manifests_only_a_snapshot_helps(tmp_path: Path) -> None:
    made = History(tmp_path)
    made.storage = ObjectRemoteStorage(made.store, LocalTieredLayout(), InlineExecutor())
    await made.copy(segment(1, PARTITIONS[0], 0, 9))
    rebuilt = await rebuild_logs(made.store)
    assert (rebuilt.count, len(rebuilt.unreadable)) == (0, 1)
    assert (await rebuild_logs(made.store, made.logs.values())).count == 1


class Topic:
    """A metadata topic in memory."""

    def __init__(self) -> None:
        self.partition_count = 0
        self.values: dict[int, list[bytes]] = {number: [] for number in range(50)}
        self.topic_id = TOPIC_ID

    async def create(self) -> None:
        self.partition_count = 50

    async def append(self, partition: int, values: Sequence[bytes]) -> int:
        self.values[partition] += values
        return len(self.values[partition]) - 1

    async def end_offset(self, partition: int) -> int:
        return len(self.values[partition])

    async def read(self, partition: int, offset: int, max_bytes: int) -> MetadataPage:
        raise AssertionError


async def test_an_empty_topic_is_written_and_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skylog.tiered.rebuild._VALUES_PER_APPEND", 3)
    made = await history(tmp_path, 1)
    rebuilt = await rebuild_logs(made.store)
    topic = Topic()
    assert await write_metadata(topic, rebuilt) == 2 * rebuilt.count
    written = {number: values for number, values in topic.values.items() if values}
    assert written == rebuilt.values(50)
    with pytest.raises(StorageError, match="a rebuild needs an empty one"):
        await write_metadata(topic, rebuilt)
    assert {number: values for number, values in topic.values.items() if values} == written
