"""The high watermark of the metadata topic waits for the disk while only the leader is in sync."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from skylog.kernel.ids import Uuid
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.log.log import Log
from skylog.replication.synced import SyncedPartition
from tests.unit.log.support import batch, open_log
from tests.unit.replication.support import LAG_MS, NODE, Host, state

TOPIC_ID = Uuid(b"t" * 16)


class Disk(Host):
    """Syncs when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs: list[asyncio.Future[None]] = []

    async def sync(self, log: Log) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.syncs.append(done)
        await done
        log.durability.sync()

    async def finish(self, error: OSError | None = None) -> None:
        waiting = self.syncs.pop(0)
        waiting.set_exception(error) if error is not None else waiting.set_result(None)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Woken:
    def __init__(self) -> None:
        self.times = 0

    def partition_moved(self, appended_bytes: int) -> None:
        self.times += 1


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def partition(tmp_path: Path, disk: Disk) -> SyncedPartition:
    return SyncedPartition(disk, METADATA_TOPIC, 0, TOPIC_ID, open_log(tmp_path / "t-0"))


async def test_records_of_a_single_replica_are_committed_once_they_are_synced(
    partition: SyncedPartition, disk: Disk
) -> None:
    partition.update(state())
    watcher = Woken()
    partition.watch(watcher)
    partition.append([batch(b"a")], 1)
    partition.append([batch(b"b")], 1)
    acknowledged = partition.committed(1)
    await settle()
    assert partition.log.high_watermark == 0
    assert acknowledged is not None
    woken = watcher.times
    partition.append([batch(b"c")], 1)
    await disk.finish()
    # The third record came too late for the sync; the next one is for it.
    assert partition.log.high_watermark == 2
    assert acknowledged.done()
    assert watcher.times > woken
    await disk.finish()
    assert partition.log.high_watermark == 3
    assert not disk.syncs
    assert partition.log.durability.recovery_point == 3


async def test_with_a_second_replica_in_sync_its_copy_is_enough(
    partition: SyncedPartition, disk: Disk
) -> None:
    partition.update(state(replicas=(NODE, 2)))
    partition.append([batch(b"a")], 1)
    partition.fetched_by(2, 1, 0, 12)
    await settle()
    assert partition.log.high_watermark == 1
    assert not disk.syncs


async def test_when_the_last_follower_leaves_the_isr_what_it_lacks_is_synced_first(
    partition: SyncedPartition, disk: Disk
) -> None:
    partition.update(state(replicas=(NODE, 2)))
    partition.append([batch(b"a")], 1)
    partition.fetched_by(2, 1, 0, 12)
    partition.append([batch(b"b")], 1)
    disk.clock.advance(LAG_MS + 1)
    partition.update(state(replicas=(NODE, 2), isr=(NODE,), version=5))
    await settle()
    assert partition.log.high_watermark == 1
    await disk.finish()
    assert partition.log.high_watermark == 2


async def test_what_was_recovered_is_synced_before_it_is_committed(
    tmp_path: Path, disk: Disk
) -> None:
    log = open_log(tmp_path / "t-0")
    log.appender.append([batch(b"a")], 0, 1)
    partition = SyncedPartition(disk, METADATA_TOPIC, 0, TOPIC_ID, log)
    partition.update(state())
    await settle()
    assert log.high_watermark == 0
    await disk.finish()
    assert log.high_watermark == 1


async def test_a_failed_sync_commits_nothing(partition: SyncedPartition, disk: Disk) -> None:
    partition.update(state())
    partition.append([batch(b"a")], 1)
    await settle()
    await disk.finish(OSError("no space"))
    assert partition.log.high_watermark == 0


async def test_a_sync_from_before_a_truncation_does_not_count(
    partition: SyncedPartition, disk: Disk
) -> None:
    partition.update(state())
    partition.append([batch(b"a")], 1)
    await settle()
    partition.update(state(leader=2, epoch=1, replicas=(NODE, 2)))
    partition.truncate_to(0)
    partition.update(state(epoch=2, replicas=(NODE, 2), isr=(NODE,)))
    partition.append([batch(b"b")], 1)
    await disk.finish()
    assert partition.log.high_watermark == 0
    await disk.finish()
    assert partition.log.high_watermark == 1
