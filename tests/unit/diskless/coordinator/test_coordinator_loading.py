"""Cache, snapshot and log: whatever is lost or damaged, the same state is restored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from skylog.diskless.bulk import PinRequest
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.plane import FindRequest
from skylog.kernel.errors import ErrorCode
from skylog.quorum.snapshots import SUFFIX
from skylog.replicated.lifecycle import State
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC, Home, home

PRODUCER = {"producer_id": 9, "producer_epoch": 1}


async def fill(opened: Home) -> None:
    """Some of everything: producers, deletions, a refusal, a duplicate, files without live batches,
    pins of committed and uncommitted objects."""
    await opened.lead(0)
    runtime = opened.runtime()
    await runtime.submit(ask.CreatePartitions([(TOPIC, "a", [0, 1])]))
    for number in range(6):
        opened.clock.advance(1000)
        sequences = {"base_sequence": number, "last_sequence": number}
        await runtime.submit(ask.CommitFile(opened.file((T1, 1), **PRODUCER, **sequences)))
        await runtime.submit(ask.CommitFile(opened.file((T0, 3), (T1, 2))))
    await runtime.submit(
        ask.CommitFile(opened.file((T1, 1), base_sequence=3, last_sequence=3, **PRODUCER))
    )
    await runtime.submit(ask.DeleteRecords([(*T0, 7), (*T1, 2)]))
    await runtime.submit(ask.PruneTo([(*T1, 5)]))
    waiting, committed, released = (opened.staged() for _ in range(3))
    expires_ms = opened.clock.now_ms() + 100_000
    await runtime.submit(
        ask.PinFiles(
            [
                PinRequest(key, "writer", 7, expires_ms, [T0])
                for key in (waiting, committed, released)
            ]
        )
    )
    await runtime.submit(ask.CommitFile(opened.file((T0, 2), (T1, 1), key=committed)))
    await runtime.submit(ask.ReleasePins([released]))


def checkpoints(opened: Home) -> list[Path]:
    return sorted(opened.database.parent.glob(f"*{SUFFIX}"))


def flip(path: Path, at: float) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0xFF
    path.write_bytes(data)


def remove(opened: Home) -> None:
    for path in opened.database.parent.glob("state.sqlite*"):
        path.unlink()


def corrupt(opened: Home) -> None:
    remove(opened)
    opened.database.write_bytes(b"no database at all" * 1000)


def tear(opened: Home) -> None:
    data = opened.database.read_bytes()
    remove(opened)
    opened.database.write_bytes(data[: len(data) // 2])


def spoil(opened: Home, statement: str) -> None:
    """Wrong content, and how it must be detected."""
    db = sqlite3.connect(opened.database)
    db.execute("UPDATE partitions SET name = 'wrong'")
    db.execute(statement)
    db.commit()
    db.close()


def foreign(opened: Home) -> None:
    spoil(opened, "UPDATE applied SET identity = 'another log'")


def other_version(opened: Home) -> None:
    spoil(opened, "PRAGMA user_version = 77")


def ahead(opened: Home) -> None:
    spoil(opened, "UPDATE applied SET end_offset = 1000")


def diverged(opened: Home) -> None:
    spoil(opened, "UPDATE applied SET last_crc = last_crc + 1")


def garbled_schema(opened: Home) -> None:
    """SQLite's error message contains bytes that are not text."""
    db = sqlite3.connect(opened.database)
    db.execute("PRAGMA writable_schema = ON")
    db.execute(
        "UPDATE sqlite_schema SET sql = CAST('CREATE TABLE partitions ' || x'9f' AS TEXT)"
        " WHERE name = 'partitions'"
    )
    db.commit()
    db.close()


def kept(opened: Home) -> None:
    """Leave it unchanged."""


DAMAGES = [remove, corrupt, tear, foreign, other_version, ahead, diverged, garbled_schema, kept]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("snapshots", [0, 1, 2])
async def test_the_state_survives_whatever_happens_to_its_cache(
    damage: Callable[[Home], None], snapshots: int
) -> None:
    # DC-26, DC-29, DC-40, DC-42
    async with home() as opened:
        await fill(opened)
        for _ in range(snapshots):
            await opened.runtime().snapshot()
            await opened.runtime().submit(ask.CommitFile(opened.file((T0, 1), (T1, 1))))
        before = await opened.digest()
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        damage(opened)
        await opened.lead(0)
        assert await opened.digest() == before
        assert opened.runtime().state is State.ACTIVE


async def test_a_cache_that_lags_behind_is_brought_up() -> None:
    async with home() as opened:
        await fill(opened)
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        stale = opened.database.read_bytes()
        await opened.lead(0)
        await opened.runtime().submit(ask.CommitFile(opened.file((T0, 5))))
        before = await opened.digest()
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        opened.database.write_bytes(stale)
        await opened.lead(0)
        assert await opened.digest() == before


async def test_the_log_is_pruned_to_the_older_of_two_snapshots() -> None:
    # DC-42
    async with home() as opened:
        await fill(opened)
        log = opened.partitions[0].log
        first = await opened.runtime().snapshot()
        assert log.log_start_offset == 0
        await opened.runtime().submit(ask.CommitFile(opened.file((T0, 1))))
        second = await opened.runtime().snapshot()
        assert log.log_start_offset == first.offset
        await opened.runtime().submit(ask.CommitFile(opened.file((T0, 1))))
        await opened.runtime().snapshot()
        assert log.log_start_offset == second.offset
        assert len(checkpoints(opened)) == 2


@pytest.mark.parametrize("at", [0.1, 0.5, 0.999])
async def test_a_damaged_snapshot_costs_time_and_nothing_else(at: float) -> None:
    async with home() as opened:
        await fill(opened)
        for _ in range(2):
            await opened.runtime().snapshot()
            await opened.runtime().submit(ask.CommitFile(opened.file((T0, 1))))
        before = await opened.digest()
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        flip(checkpoints(opened)[-1], at)
        await opened.lead(0)
        assert await opened.digest() == before


async def test_half_a_snapshot_is_swept_away() -> None:
    async with home() as opened:
        await fill(opened)
        half = opened.database.with_name(f"{5:020d}-{0:010d}.checkpoint.part")
        half.write_bytes(b"half")
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        await opened.lead(0)
        assert not half.exists()


async def test_without_a_whole_snapshot_it_does_not_pretend() -> None:
    async with home() as opened:
        await fill(opened)
        for _ in range(2):
            await opened.runtime().snapshot()
            await opened.runtime().submit(ask.CommitFile(opened.file((T0, 1))))
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        for path in checkpoints(opened):
            flip(path, 0.5)
        await opened.lead(0)
        assert opened.runtime().state is State.UNLOADED
        assert opened.timers.actions  # and tries again


async def test_a_snapshot_keeps_offsets_of_a_partition_without_batches() -> None:
    async with home() as opened:
        await fill(opened)
        runtime = opened.runtime()
        await runtime.submit(ask.DeleteRecords([(*T0, -1), (*T1, -1)]))
        for _ in range(2):
            await runtime.snapshot()
            await runtime.submit(ask.CreatePartitions([(TOPIC, "a", [2])]))
        before = await opened.digest()
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        await opened.lead(0)
        assert await opened.digest() == before
        (result,) = await opened.runtime().submit(ask.CommitFile(opened.file((T0, 1))))
        assert (result.assigned_base_offset, result.log_start_offset) == (20, 20)


async def test_batch_ids_and_producers_and_answers_outlast_a_snapshot() -> None:
    # Q26
    async with home() as opened:
        await fill(opened)
        file = opened.file((T0, 2), ((TOPIC, 8), 1))
        first = await opened.runtime().submit(ask.CommitFile(file))
        find = ask.FindBatches([FindRequest(*T0, 7, 1 << 20)], 1 << 20)
        (before,) = await opened.runtime().find(find)
        await opened.runtime().snapshot()
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        await opened.lead(0)
        runtime = opened.runtime()
        assert await runtime.find(find) == [before]
        again = await runtime.submit(ask.CommitFile(file))
        assert [r.error for r in again] == [r.error for r in first]
        assert again[0].assigned_base_offset == first[0].assigned_base_offset
        assert again[0].duplicate
        twice = opened.file((T1, 1), base_sequence=5, last_sequence=5, **PRODUCER)
        (result,) = await runtime.submit(ask.CommitFile(twice))
        assert result.duplicate
        wrong = opened.file((T1, 1), base_sequence=9, last_sequence=9, **PRODUCER)
        (result,) = await runtime.submit(ask.CommitFile(wrong))
        assert result.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_snapshots_are_taken_by_themselves() -> None:
    # DC-39
    async with home(settings=RuntimeSettings(snapshot_bytes=2000)) as opened:
        await opened.lead(0)
        runtime = opened.runtime()
        await runtime.submit(ask.CreatePartitions([(TOPIC, "a", [0, 1])]))
        for _ in range(60):
            await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
            await runtime.caught_up()
        assert len(checkpoints(opened)) == 2
        assert opened.partitions[0].log.log_start_offset > 0


async def test_deleted_files_come_back_after_a_rebuild_and_go_again() -> None:
    # DC-46, Q31
    async with home() as opened:
        await fill(opened)
        runtime = opened.runtime()
        await runtime.submit(ask.DeleteRecords([(*T0, -1), (*T1, -1)]))
        free = ask.FreeFiles(opened.clock.now_ms() + 1, 0)
        files = await runtime.find(free)
        assert len(files) == 14
        before = await opened.digest()
        await runtime.find(ask.ForgetFiles([file.object_key for file in files]))
        assert await runtime.find(free) == []
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        await opened.lead(0)
        assert await opened.runtime().find(free) == files
        assert await opened.digest() == before


async def test_the_same_state_in_sqlite_and_in_memory() -> None:
    async with home() as on_disk, home(in_memory=True) as in_memory:
        await fill(on_disk)
        await fill(in_memory)
        assert await on_disk.digest() == await in_memory.digest()


async def test_producers_expire_by_the_time_of_the_log() -> None:
    # Q15
    async with home() as opened:
        await fill(opened)
        opened.clock.advance(RuntimeSettings().rules.producer_expiration_ms)
        anywhere = opened.file((T1, 1), base_sequence=70, last_sequence=70, **PRODUCER)
        (result,) = await opened.runtime().submit(ask.CommitFile(anywhere))
        assert result.error is ErrorCode.NONE
        await opened.runtime().caught_up()
        machine = opened.runtime().machine
        assert machine is not None
        ((_, producer_id, entries),) = machine.state.all_producers()
        assert (producer_id, [entry.base_sequence for entry in entries]) == (9, [70])
        before = await opened.digest()
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        remove(opened)
        await opened.lead(0)
        assert await opened.digest() == before
