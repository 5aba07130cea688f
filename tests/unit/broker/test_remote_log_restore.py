"""Remote logs in backups, and what a restore makes of them: the same on every node."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from skylog.broker.tiered.restoring import RemoteLogRestore
from skylog.diskless.files.backup import MetadataBackup, NodeIdentity, StateToBackup
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.objects.holds import read_holds
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.tiered.layout.plan import AivenLayout
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.snapshots import RemoteLogState, encode_snapshot
from skylog.wire.batch import split_batches
from skylog.wire.metadata_records import decode_remote_log
from skylog.wire.records import decode_records
from tests.unit.tiered.test_rebuild import PARTITIONS, History, history, segment

METADATA_ID = Uuid(b"metadata topic 0")
COUNT = 50


class Nodes:
    """Two brokers that back up, one of them earlier."""

    def __init__(self, made: History) -> None:
        self.made = made
        self.backups = MemoryStore()
        self.clock = ManualClock()

    async def back_up(self, node_id: int, logs: Sequence[RemoteLog]) -> MetadataBackup:
        backup = MetadataBackup(
            NodeIdentity("cluster", node_id, ["dir"]),
            tuple,
            str,
            self.backups,
            clock=self.clock,
            rng=random.Random(node_id),
            executor=InlineExecutor(),
        )
        backup.include(lambda: self.states(logs))
        await backup.run_once()
        return backup

    def states(self, logs: Sequence[RemoteLog]) -> list[StateToBackup]:
        found: dict[int, list[RemoteLog]] = {}
        for log in logs:
            found.setdefault(metadata_partition(log.partition, COUNT), []).append(log)
        return [
            StateToBackup(METADATA_TOPIC, number, METADATA_ID, 0, "replica", encoded(number, kept))
            for number, kept in sorted(found.items())
        ]

    def restore(self) -> RemoteLogRestore:
        return RemoteLogRestore(self.backups, self.made.store, self.clock, partitions=COUNT)


def encoded(number: int, logs: Sequence[RemoteLog]) -> Callable[[], bytes]:
    states = [RemoteLogState(*log.snapshot()) for log in logs]
    return lambda: encode_snapshot(METADATA_ID, number, 0, states)


async def test_every_node_restores_the_same_from_all_backups(tmp_path: Path) -> None:
    nodes = Nodes(made := await history(tmp_path, 1))
    await nodes.back_up(1, list(made.backups[5].values()))
    await nodes.back_up(2, list(made.backups[-1].values())[:2])
    first, second = nodes.restore(), nodes.restore()
    batches = await first.batches({})
    assert batches == await second.batches({})
    assert batches == {n: data for n, data in batches.items() if data}
    records = {
        number: [
            decode_remote_log(record.value)
            for batch in split_batches(data)
            for record in decode_records(batch)
        ]
        for number, data in batches.items()
    }
    rebuilt = first.rebuilt
    assert rebuilt is not None
    assert sum(map(len, records.values())) == 2 * rebuilt.count
    offsets = [batch.base_offset for data in batches.values() for batch in split_batches(data)]
    assert offsets.count(0) == len(batches)
    assert await read_holds(made.store) == []


async def test_a_backup_is_written_again_only_where_it_changed(tmp_path: Path) -> None:
    nodes = Nodes(made := await history(tmp_path, 1))
    backup = await nodes.back_up(1, list(made.logs.values()))
    written = backup.stats.bytes
    await backup.run_once()
    assert (backup.stats.backups, backup.stats.bytes) == (1, written)
    await made.copy(segment(90, PARTITIONS[0], 10_000, 10_009))
    nodes.clock.advance(1000)
    backup.include(lambda: nodes.states(list(made.logs.values())))
    await backup.run_once()
    assert backup.stats.backups == 2
    assert 0 < backup.stats.bytes - written < written


async def test_what_cannot_be_restored_is_held(tmp_path: Path) -> None:
    nodes = Nodes(made := await history(tmp_path, 1))
    stray = segment(90, PARTITIONS[0], 10_000, 10_009)
    await made.storage.copy(stray, made.files)
    await nodes.back_up(1, [])
    await made.store.put(AivenLayout().manifest_key(stray), b"garbage")
    restore = nodes.restore()
    await restore.batches({})
    assert restore.rebuilt is not None
    assert len(restore.rebuilt.unreadable) == 1
    assert len(await read_holds(made.store)) == 1


async def test_a_damaged_backup_is_an_error_and_none_is_no_error(tmp_path: Path) -> None:
    nodes = Nodes(made := await history(tmp_path, 1))
    assert await nodes.restore().batches({})  # manifests alone
    await nodes.back_up(1, list(made.logs.values()))
    key = next(
        info.key.text
        for info in [info async for info in nodes.backups.list("backup/node-1/")]
        if "remote-log-metadata" in info.key.text
    )
    await nodes.backups.put(ObjectKey.parse(key), b"other bytes")
    with pytest.raises(StorageError, match="differs from what was backed up"):
        await nodes.restore().batches({})
    await nodes.backups.delete_many([ObjectKey.parse(key)])
    with pytest.raises(StorageError, match="is gone"):
        await nodes.restore().batches({})


async def test_what_remote_segments_have_is_known(tmp_path: Path) -> None:
    """Without gaps only: an object with a batch beyond them is missed."""
    nodes = Nodes(made := await history(tmp_path, 1))
    for number, (start, end) in enumerate([(10_000, 10_009), (10_010, 10_014), (10_020, 10_029)]):
        await made.storage.copy(segment(90 + number, PARTITIONS[0], start, end), made.files)
    restore, partition = nodes.restore(), tuple(PARTITIONS[0])
    assert not restore.has(partition, 10_000, 10_000)
    restore = nodes.restore()
    await restore.batches({})
    assert restore.has(partition, 10_000, 10_014)
    assert restore.has(partition, 10_014, 10_014)
    assert not restore.has(partition, 9_999, 10_000)
    assert not restore.has(partition, 10_014, 10_015)
    assert not restore.has(partition, 10_015, 10_019)
    assert restore.has(partition, 10_020, 10_029)
    assert not restore.has((METADATA_ID, 0), 0, 0)


async def test_a_backup_from_before_a_restore_counts_no_more(tmp_path: Path) -> None:
    """Of a node that has not come back. The metadata was written anew by the restore, so that its
    offsets are lower than they were."""
    nodes = Nodes(made := History(tmp_path))
    ended = [segment(n + 1, PARTITIONS[0], n * 10, n * 10 + 9) for n in range(3)]
    for one in ended:
        await made.copy(one)
    await nodes.back_up(3, list(made.logs.values()))
    nodes.clock.advance(1000)
    made.offset, made.logs = 0, {one: RemoteLog(one, "topic1") for one in PARTITIONS}
    since = segment(9, PARTITIONS[0], 10, 29)
    await made.copy(ended[0])
    await made.copy(since)
    await nodes.back_up(1, list(made.logs.values()))
    restore = nodes.restore()
    await restore.batches({PARTITIONS[0]: (30, 40)})
    assert restore.rebuilt is not None
    taken = [one.id for one in restore.rebuilt.segments[PARTITIONS[0]]]
    assert taken == [ended[0].id, since.id]
