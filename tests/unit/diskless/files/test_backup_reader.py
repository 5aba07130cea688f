"""Of several nodes' backups of a log the newest counts: the latest epoch, then the longest."""

from __future__ import annotations

import pytest

from skylog.diskless.files.backup_reader import (
    batches_of,
    identity,
    latest_of_all,
    newest_logs,
)
from skylog.diskless.files.manifest import (
    LogBackup,
    Manifest,
    Part,
    digest_of,
    manifest_key,
    part_key,
)
from skylog.kernel.errors import StorageError
from skylog.objects.memory import MemoryStore
from skylog.quorum.snapshots import SnapshotId
from skylog.wire.records import encode_batch

TOPIC = "__diskless_metadata"


class Bucket:
    def __init__(self) -> None:
        self.store = MemoryStore()

    async def put(self, node_id: int, data: bytes, start: int, end: int) -> Part:
        key = part_key(node_id, TOPIC, 0, digest_of(data))
        await self.store.put(key, data)
        return Part(key.text, len(data), digest_of(data), start, end)

    async def log(
        self, node_id: int, end: int, epoch: int = 0, snapshot: SnapshotId | None = None
    ) -> LogBackup:
        """One batch for each offset, behind the snapshot if there is one."""
        start = snapshot.offset if snapshot else 0
        pieces = []
        for offset in range(start, end):
            data = encode_batch(
                [(None, b"%d" % epoch)], timestamp=1, base_offset=offset, leader_epoch=epoch
            )
            pieces.append(await self.put(node_id, bytes(data), offset, offset + 1))
        taken = await self.put(node_id, b"snapshot", 0, start) if snapshot else None
        name = snapshot.file_name if snapshot else ""
        return LogBackup(TOPIC, 0, "topic-id", taken, name, tuple(pieces))

    async def manifest(self, node_id: int, created_ms: int, *logs: LogBackup) -> None:
        manifest = Manifest("cluster", node_id, ("dir",), created_ms, "", logs)
        await self.store.put(manifest_key(node_id, created_ms, b"rand"), manifest.to_bytes())

    async def newest(self) -> LogBackup:
        found = await newest_logs(self.store, await latest_of_all(self.store), TOPIC)
        (log,) = found.values()
        return log


async def test_the_longest_backup_counts() -> None:
    bucket = Bucket()
    for node_id, end in ((1, 3), (2, 5), (3, 4)):
        await bucket.manifest(node_id, 10 - node_id, await bucket.log(node_id, end))
    newest = await bucket.newest()
    assert (newest.end_offset, identity(newest)) == (5, ("topic-id", 0))
    offsets = [b.base_offset async for page in batches_of(bucket.store, newest) for b in page]
    assert offsets == [0, 1, 2, 3, 4]


async def test_a_longer_backup_from_before_a_restore_does_not_count() -> None:
    bucket = Bucket()
    await bucket.manifest(1, 1, await bucket.log(1, 9, epoch=7))
    await bucket.manifest(2, 2, await bucket.log(2, 4, epoch=1_000_000))
    assert (await bucket.newest()).end_offset == 4


@pytest.mark.parametrize(("epoch", "end"), [(3, 4), (2, 5)])
async def test_a_snapshot_without_a_tail_has_its_own_epoch(epoch: int, end: int) -> None:
    bucket = Bucket()
    await bucket.manifest(1, 1, await bucket.log(1, 5, epoch=2))
    await bucket.manifest(2, 1, await bucket.log(2, 4, snapshot=SnapshotId(4, epoch)))
    assert (await bucket.newest()).end_offset == end


async def test_only_the_latest_backup_of_a_node_counts() -> None:
    bucket = Bucket()
    await bucket.manifest(1, 1, await bucket.log(1, 9))
    await bucket.manifest(1, 2, await bucket.log(1, 2))
    assert (await bucket.newest()).end_offset == 2


async def test_a_damaged_piece_is_an_error() -> None:
    bucket = Bucket()
    log = await bucket.log(1, 2)
    await bucket.manifest(1, 1, log)
    await bucket.store.put(log.pieces[-1].object_key, b"other")
    with pytest.raises(StorageError, match="differs from what was backed up"):
        await bucket.newest()
