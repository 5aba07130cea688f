"""Backups: each is complete or does not exist, adds only what is new, and old ones are deleted."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.diskless.files import backup as backup_module
from skylog.diskless.files.backup import (
    KEPT,
    PIECES_MAX,
    LogToBackup,
    MetadataBackup,
    NodeIdentity,
    read_manifest,
)
from skylog.diskless.files.backup_reader import latest_backup
from skylog.diskless.files.manifest import LogBackup, Manifest, Part, manifest_prefix
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import KafkaError, StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import random_uuid
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.objects.claim import KEY
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.memory import MemoryStore
from skylog.objects.store import ObjectError
from skylog.quorum.snapshots import SnapshotId
from skylog.wire.batch import Batch, split_batches
from skylog.wire.records import encode_batch

TOPIC = "__diskless_metadata"


class Node:
    """A log, its snapshots, and the backups of both."""

    def __init__(self, directory: Path) -> None:
        self.rng = random.Random(2)
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.snapshots = directory / "snapshots"
        self.snapshots.mkdir()
        self.topic_id: Uuid = random_uuid(self.rng)
        host = LogHost(Files(16))
        self.log = Log.open((TOPIC, 0), str(directory / "log"), host, LogConfig(), 0)
        self.faulty = FaultyStore(self.store, random.Random(4), Faults())
        self.cluster_id = "cluster"
        self.backup = self.new_backup()

    def new_backup(self) -> MetadataBackup:
        return MetadataBackup(
            NodeIdentity(self.cluster_id, 1, ["directory"]),
            lambda: [LogToBackup(TOPIC, 0, self.topic_id, self.snapshots, self.log)],
            lambda: "election",
            self.faulty,
            clock=self.clock,
            rng=self.rng,
            executor=InlineExecutor(),
        )

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            value = self.rng.randbytes(20)
            batch = Batch(bytearray(encode_batch([(None, value)], timestamp=1)))
            self.log.appender.append([batch], 0, 1)
        self.log.high_watermark = self.log.log_end_offset

    def snapshot(self) -> None:
        name = SnapshotId(self.log.high_watermark, 0).file_name
        (self.snapshots / name).write_bytes(self.rng.randbytes(50))

    async def run(self) -> None:
        self.clock.advance(1_000)
        await self.backup.run_once()

    async def objects(self) -> set[str]:
        return {info.key.text async for info in self.store.list("backup/")}

    async def restored(self) -> list[tuple[int, bytes]]:
        """Offsets and bytes of the log in the latest backup after its snapshot."""
        (log,) = (await latest_backup(self.store, 1)).logs
        found = []
        for piece in log.pieces:
            data = await self.store.get(piece.object_key)
            piece.check(data)
            found += [(b.base_offset, bytes(b.buffer)) for b in split_batches(data)]
        return [one for one in found if one[0] >= log.start_offset]

    def written(self, start: int = 0) -> list[tuple[int, bytes]]:
        end = self.log.high_watermark
        data = self.log.reader.read(start, 1 << 20, end, min_one=True, block=True).buffer
        return [(b.base_offset, bytes(b.buffer)) for b in split_batches(data)]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.log.close()


async def test_each_backup_adds_what_is_new(node: Node) -> None:
    for added in (3, 2, 4):
        node.append(added)
        before = node.backup.stats.bytes
        await node.run()
        assert node.backup.stats.bytes - before < added * 120
        assert await node.restored() == node.written()
    (log,) = (await latest_backup(node.store, 1)).logs
    assert [(p.start_offset, p.end_offset) for p in log.pieces] == [(0, 3), (3, 5), (5, 9)]


async def test_nothing_is_put_when_nothing_changed(node: Node) -> None:
    node.append()
    await node.run()
    objects = await node.objects()
    await node.run()
    assert await node.objects() == objects
    assert node.backup.stats.backups == 1


async def test_only_what_is_committed_is_copied(node: Node) -> None:
    node.append(5)
    node.log.high_watermark = 3
    await node.run()
    assert [offset for offset, _ in await node.restored()] == [0, 1, 2]


async def test_a_snapshot_replaces_what_came_before_it(node: Node) -> None:
    node.append(3)
    await node.run()
    node.append(2)
    node.snapshot()
    node.append(2)
    await node.run()
    (log,) = (await latest_backup(node.store, 1)).logs
    assert log.snapshot is not None
    assert (log.start_offset, log.end_offset) == (5, 7)
    log.snapshot.check(await node.store.get(log.snapshot.object_key))
    assert await node.restored() == node.written(5)


async def test_old_backups_and_left_overs_are_pruned(node: Node) -> None:
    for _ in range(KEPT + 4):
        node.append()
        node.snapshot()
        await node.run()
    manifests = [info async for info in node.store.list(manifest_prefix(1))]
    assert len(manifests) == KEPT
    needed = {info.key.text for info in manifests}
    for info in manifests:
        manifest = await read_manifest(node.store, info)
        needed |= {part.key for log in manifest.logs for part in log.parts}
    assert await node.objects() == {*needed, KEY.text}


async def test_many_pieces_become_one(node: Node) -> None:
    for _ in range(PIECES_MAX + 1):
        node.append()
        await node.run()
    (log,) = (await latest_backup(node.store, 1)).logs
    assert len(log.pieces) == 1
    assert await node.restored() == node.written()


async def test_large_logs_are_cut_into_pieces(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_module, "DISKLESS_BACKUP_PIECE_BYTES", 250)
    node.append(10)
    await node.run()
    (log,) = (await latest_backup(node.store, 1)).logs
    assert len(log.pieces) > 2
    assert await node.restored() == node.written()


@pytest.mark.parametrize("seed", range(8))
async def test_a_backup_that_is_cut_off_leaves_the_one_before(node: Node, seed: int) -> None:
    node.append(2)
    await node.run()
    node.faulty = FaultyStore(node.store, random.Random(seed), Faults(before=0.3, after=0.3))
    node.backup = node.new_backup()  # as after a restart
    seen = 2
    for _ in range(10):
        node.append()
        with contextlib.suppress(ObjectError):
            await node.run()
        offsets = [offset for offset, _ in await node.restored()]
        assert offsets == list(range(len(offsets)))
        assert len(offsets) >= seen
        seen = len(offsets)
    node.faulty.faults = Faults()
    node.append()
    await node.run()
    assert await node.restored() == node.written()


async def test_a_snapshot_that_vanishes_fails_this_backup_only(node: Node) -> None:
    node.append(2)
    node.snapshot()
    (path,) = node.snapshots.iterdir()
    path.unlink()
    path.mkdir()  # cannot be read as a file
    with pytest.raises(KafkaError):
        await node.run()
    path.rmdir()
    await node.run()
    assert await node.restored() == node.written()


async def test_a_new_cluster_does_not_prune_the_backups_of_the_old_one(node: Node) -> None:
    node.append()
    await node.run()
    objects = await node.objects()
    node.cluster_id = "formatted-on-an-empty-disk"
    node.backup = node.new_backup()
    for _ in range(KEPT + 1):
        node.append()
        with pytest.raises(StorageError):
            await node.run()
    assert await node.objects() == objects


def manifest() -> Manifest:
    part = Part("backup/node-1/diskless-metadata-0/00", 1, "d", 0, 5)
    log = LogBackup(TOPIC, 0, "id", part, "name", (part,))
    return Manifest("cluster", 1, ("a", "b"), 7, "", (log,))


def test_a_manifest_survives_its_bytes() -> None:
    assert Manifest.from_bytes(manifest().to_bytes()) == manifest()


@pytest.mark.parametrize(
    "damage",
    [
        (b'"version": 1', b'"version": 2'),
        (b'"version": 1', b'"other": 1'),
        (b'"logs": [{', b'"logs": [[], {'),
        (b'"size": 1', b'"size": "x"'),
        (b'"topic": "__diskless_metadata"', b'"topic": 5'),
        (b"}", b""),
    ],
)
def test_a_damaged_manifest_is_refused(damage: tuple[bytes, bytes]) -> None:
    with pytest.raises(StorageError):
        Manifest.from_bytes(manifest().to_bytes().replace(*damage))


def test_a_part_that_is_not_what_was_backed_up_is_refused() -> None:
    with pytest.raises(StorageError):
        manifest().logs[0].parts[0].check(b"x")
    with pytest.raises(StorageError):
        _ = Part("../../etc/passwd", 1, "d", 0, 5).object_key
