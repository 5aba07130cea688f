"""Snapshots of the metadata log: when one is due, what it prunes, what a restart finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import StorageError
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.retention import Retention
from skylog.quorum.snapshots import SnapshotId, read_snapshot
from skylog.replicated.log import LoadedBatch
from tests.unit.quorum.support import CrashFiles, Rig, started, value

HOUR_MS = 3_600_000
# Small enough that a few batches fill a segment.
SMALL = MetadataLogConfig(segment_bytes=400, retention=Retention(600, -1))
STATE = [value(1000), value(1001)]


async def fill(rig: Rig, count: int) -> None:
    for number in range(count):
        await rig.commit([value(number)])


def names(rig: Rig, suffix: str) -> list[str]:
    found = rig.storage.metadata_log.glob(f"*{suffix}")
    return sorted(path.name.removesuffix(suffix) for path in found)


async def test_a_snapshot_is_due_after_enough_bytes(tmp_path: Path) -> None:
    config = MetadataLogConfig(snapshot_after_bytes=700, snapshot_after_ms=0)
    rig = await started(tmp_path, config=config)
    assert not rig.node.snapshot_due(rig.clock.now_ms())
    await fill(rig, 10)
    rig.clock.advance(1000 * HOUR_MS)
    assert rig.node.snapshot_due(rig.clock.now_ms())
    await rig.node.write_snapshot(rig.node.end_offset, STATE)
    assert not rig.node.snapshot_due(rig.clock.now_ms())


async def test_a_snapshot_is_due_after_enough_time(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await fill(rig, 1)
    rig.clock.advance(HOUR_MS - 1)
    assert not rig.node.snapshot_due(rig.clock.now_ms())
    rig.clock.advance(1)
    assert rig.node.snapshot_due(rig.clock.now_ms())
    await rig.node.write_snapshot(rig.node.end_offset, STATE)
    rig.clock.advance(HOUR_MS)
    assert not rig.node.snapshot_due(rig.clock.now_ms()), "nothing has come since"
    await fill(rig, 1)
    assert rig.node.snapshot_due(rig.clock.now_ms())


async def test_bytes_before_a_restart_count(tmp_path: Path) -> None:
    config = MetadataLogConfig(snapshot_after_bytes=700)
    rig = await started(tmp_path, config=config)
    await fill(rig, 10)
    rig = await started(tmp_path, config=config)
    assert rig.node.snapshot_due(rig.clock.now_ms())


async def test_a_snapshot_and_what_follows_are_read_back(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await fill(rig, 3)
    await rig.node.write_snapshot(6, STATE)
    await rig.commit([value(7)])
    await rig.node.close()
    rig = await started(tmp_path)
    expected = [LoadedBatch(5, STATE, from_snapshot=True), LoadedBatch(6, [value(7)])]
    assert await rig.load() == expected
    published: list[LoadedBatch] = []
    await rig.node.subscribe(published.append)
    assert published == expected


async def test_a_snapshot_carries_epoch_time_and_voters(tmp_path: Path) -> None:
    await (await started(tmp_path)).node.close()
    rig = await started(tmp_path)
    rig.clock.advance(5)
    await fill(rig, 1)
    written_at = rig.clock.now_ms()
    rig.clock.advance(50)
    await rig.node.write_snapshot(rig.node.end_offset, STATE)
    path = rig.storage.metadata_log / SnapshotId(rig.node.end_offset, 2).file_name
    snapshot = read_snapshot(path)
    assert snapshot.records == STATE
    assert snapshot.last_timestamp == written_at
    assert snapshot.quorum.kraft_version == 1
    assert snapshot.quorum.voters is not None
    assert snapshot.quorum.voters.keys == (rig.storage.replica,)


async def test_the_same_snapshot_twice_is_written_once(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await fill(rig, 1)
    await rig.node.write_snapshot(4, STATE)
    await rig.node.write_snapshot(4, [value(5)])
    assert (await rig.load())[0].records == STATE
    assert len(names(rig, ".checkpoint")) == 2


async def test_segments_before_a_kept_snapshot_are_deleted(tmp_path: Path) -> None:
    rig = await started(tmp_path, config=SMALL)
    await fill(rig, 20)
    first = rig.node.end_offset
    assert names(rig, ".log")[0] == f"{0:020d}"
    await rig.node.write_snapshot(first, STATE)
    assert names(rig, ".checkpoint") == [f"{first:020d}-{1:010d}"], "the first one is deleted"
    assert all(int(name) > 0 for name in names(rig, ".log"))
    await fill(rig, 20)
    second = rig.node.end_offset
    await rig.node.write_snapshot(second, STATE)
    assert names(rig, ".checkpoint") == [f"{second:020d}-{1:010d}"]
    await rig.commit([value(99)])
    await rig.node.close()
    rig = await started(tmp_path, config=SMALL)
    assert await rig.values() == [STATE[0][1], STATE[1][1], value(99)[1]]
    assert rig.node.epoch == 2


async def test_without_pressure_older_snapshots_and_segments_stay(tmp_path: Path) -> None:
    rig = await started(tmp_path, config=MetadataLogConfig(segment_bytes=400))
    await fill(rig, 20)
    await rig.node.write_snapshot(rig.node.end_offset, STATE)
    assert len(names(rig, ".checkpoint")) == 2
    assert names(rig, ".log")[0] == f"{0:020d}"


async def test_old_snapshots_go_by_age(tmp_path: Path) -> None:
    config = MetadataLogConfig(retention=Retention(-1, HOUR_MS))
    rig = await started(tmp_path, config=config)
    await fill(rig, 1)
    await rig.node.write_snapshot(4, STATE)
    rig.clock.advance(HOUR_MS + 1)
    await fill(rig, 1)
    await rig.node.write_snapshot(5, STATE)
    assert names(rig, ".checkpoint") == [f"{5:020d}-{1:010d}"]


async def test_what_a_stopped_snapshot_left_is_removed(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await fill(rig, 2)
    (rig.storage.metadata_log / SnapshotId(5, 1).file_name).with_suffix(
        ".checkpoint.part"
    ).write_bytes(b"half")
    assert len(names(rig, ".part")) == 1
    rig = await started(tmp_path)
    assert names(rig, ".part") == []
    assert await rig.values() == [value(0)[1], value(1)[1]]


@pytest.mark.parametrize("fault", ["write", "sync", "rename"])
async def test_a_snapshot_that_fails_leaves_nothing_and_is_due_again(
    tmp_path: Path, fault: str
) -> None:
    files = CrashFiles()
    config = MetadataLogConfig(snapshot_after_bytes=100)
    rig = await started(tmp_path, files=files, config=config)
    await fill(rig, 2)
    files.fails.add(fault)
    with pytest.raises(StorageError, match="no snapshot at 5"):
        await rig.node.write_snapshot(5, STATE)
    files.fails.clear()
    assert names(rig, ".part") == []
    assert rig.node.snapshot_due(rig.clock.now_ms())
    await rig.node.write_snapshot(5, STATE)
    assert (await rig.load())[0].records == STATE


async def test_a_log_that_ends_before_its_snapshot_goes_on_after_it(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await fill(rig, 5)
    await rig.node.write_snapshot(8, STATE)
    await rig.node.close()
    log = rig.storage.metadata_log / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:300])
    rig = await started(tmp_path)
    assert await rig.load() == [LoadedBatch(7, STATE, from_snapshot=True)]
    assert rig.node.end_offset == 9, "the snapshot's end and the record that begins the epoch"
    assert rig.node.epoch == 2
    await rig.commit([value(1)])
    rig = await started(tmp_path)
    assert await rig.values() == [STATE[0][1], STATE[1][1], value(1)[1]]


async def test_a_log_without_the_snapshot_before_it_is_refused(tmp_path: Path) -> None:
    rig = await started(tmp_path, config=SMALL)
    await fill(rig, 20)
    await rig.node.write_snapshot(rig.node.end_offset, STATE)
    await rig.node.close()
    for path in rig.storage.metadata_log.glob("*.checkpoint"):
        path.unlink()
    with pytest.raises(StorageError, match="no snapshot of what came before"):
        await Rig(tmp_path, config=SMALL).node.start()


async def test_a_damaged_snapshot_is_not_served(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await fill(rig, 5)
    await rig.node.write_snapshot(8, STATE)
    path = rig.storage.metadata_log / SnapshotId(8, 1).file_name
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[-90] ^= 1
    path.write_bytes(content)
    rig = await started(tmp_path)
    with pytest.raises(StorageError, match="is damaged"):
        await rig.load()


async def test_the_directory_of_another_topic_is_refused(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    metadata = "version: 0\ntopic_id: d_YHR3mHSAqVnfwACqYwfw"
    (rig.storage.metadata_log / "partition.metadata").write_text(metadata)
    with pytest.raises(StorageError, match="is not the metadata log"):
        await rig.node.start()
