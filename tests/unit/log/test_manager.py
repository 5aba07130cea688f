# ruff: noqa: ASYNC240 — the directory is looked at while nothing else runs
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig, LogManagerSettings
from skylog.log.manager import LogManager
from tests.unit.log.support import NOW, FaultyFiles, fill, open_log, read_values

FIRST, SECOND = Uuid(b"first topic's id"), Uuid(b"second one's id.")
CONFIG = LogConfig(segment_bytes=400)


def new_manager(path: Path, clock: ManualClock | None = None, **kwargs: object) -> LogManager:
    settings = LogManagerSettings(**kwargs)  # type: ignore[arg-type]
    return LogManager([str(path)], clock or ManualClock(NOW), InlineExecutor(), settings)


@contextlib.asynccontextmanager
async def started(path: Path, clock: ManualClock | None = None) -> AsyncIterator[LogManager]:
    manager = new_manager(path, clock)
    await manager.start()
    yield manager
    await manager.close(11)


async def turns() -> None:
    """Let background tasks run."""
    for _ in range(100):
        await asyncio.sleep(0)


def crash(manager: LogManager) -> None:
    """Only what the end of the process does."""
    manager.unlock()


async def test_logs_come_back_after_a_clean_shutdown(tmp_path: Path) -> None:
    async with started(tmp_path) as manager:
        assert manager.previous_broker_epoch == -1
        fill(manager.get_or_create("t-x", 3, FIRST, CONFIG), [b"a", b"b"], epoch=5)
        manager.get_or_create("empty", 0, SECOND, CONFIG)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":11}'
    assert (tmp_path / "t-x-3" / "partition.metadata").read_text() == (
        f"version: 0\ntopic_id: {FIRST}"
    )
    async with started(tmp_path) as manager:
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        assert manager.previous_broker_epoch == 11
        log = manager.get("t-x", 3)
        assert log is not None
        assert read_values(log) == [(0, b"a"), (1, b"b")]
        assert (log.high_watermark, log.durability.recovery_point, log.companions.topic_id) == (
            2,
            2,
            FIRST,
        )
        assert log.latest_epoch == 5
        assert {(found.topic, found.partition) for found in manager.logs()} == {
            ("t-x", 3),
            ("empty", 0),
        }


async def test_an_unclean_end_is_recovered_from(tmp_path: Path) -> None:
    manager = new_manager(tmp_path)
    await manager.start()
    log = manager.get_or_create("t", 0, FIRST, CONFIG)
    fill(log, [b"%d" % n for n in range(9)])
    log.durability.sync()
    await manager.checkpoint()
    await manager.checkpoint_high_watermarks()
    fill(log, [b"torn"])
    path = Path(log.segments[-1].log_path)
    crash(manager)
    path.write_bytes(path.read_bytes()[:-3])
    async with started(tmp_path) as manager:
        found = manager.get("t", 0)
        assert found is not None
        assert (found.log_end_offset, found.high_watermark) == (9, 9)
        assert found.durability.recovery_point == 9


async def test_one_broker_at_a_time(tmp_path: Path) -> None:
    async with started(tmp_path):
        with pytest.raises(StorageError, match="in use by another broker"):
            await new_manager(tmp_path).start()
    async with started(tmp_path):
        pass


async def test_the_first_lock_is_released_last(tmp_path: Path) -> None:
    manager = new_manager(tmp_path)
    manager.lock()
    await manager.start()
    await manager.close()
    with pytest.raises(StorageError):
        new_manager(tmp_path).lock()
    manager.unlock()
    manager.unlock()
    async with started(tmp_path):
        pass


async def test_the_metadata_log_is_the_quorums(tmp_path: Path) -> None:
    open_log(tmp_path / "__cluster_metadata-0").close()
    (tmp_path / "not a log").mkdir()
    async with started(tmp_path) as manager:
        assert list(manager.logs()) == []


async def test_a_deleted_log_goes_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    async with started(tmp_path, clock) as manager:
        log = manager.get_or_create("t", 0, FIRST, LogConfig(file_delete_delay_ms=1000))
        fill(log, [b"a"])
        manager.delete("t", 0)
        manager.delete("t", 0)
        assert manager.get("t", 0) is None
        with pytest.raises(KafkaError) as caught:
            log.reader.read(0, 100, 1, min_one=True, block=True)
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        [doomed] = tmp_path.glob("t-0.*-delete")
        clock.advance(999)
        await manager.remove_discarded()
        assert doomed.exists()
        clock.advance(1)
        await manager.remove_discarded()
        assert not doomed.exists()


async def test_directories_on_their_way_out_go_after_a_restart(tmp_path: Path) -> None:
    doomed = tmp_path / f"t-0.{'0' * 32}-delete"
    doomed.mkdir()
    (doomed / "00000000000000000000.log").write_bytes(b"x")
    clock = ManualClock(NOW)
    async with started(tmp_path, clock) as manager:
        assert manager.get("t", 0) is None
        clock.advance(60_000)
        await manager.remove_discarded()
        assert not doomed.exists()


async def test_offsets_of_a_deleted_partition_do_not_meet_the_next_of_its_name(
    tmp_path: Path,
) -> None:
    manager = new_manager(tmp_path)
    await manager.start()
    log = manager.get_or_create("t", 0, FIRST, CONFIG)
    fill(log, [b"old"] * 50)
    log.trimming.delete_records_before(47)
    log.durability.sync()
    await manager.checkpoint()
    manager.delete("t", 0)
    fill(manager.get_or_create("t", 0, SECOND, CONFIG), [b"new"] * 3)
    crash(manager)
    async with started(tmp_path) as manager:
        found = manager.get("t", 0)
        assert found is not None
        assert read_values(found) == [(n, b"new") for n in range(3)]


async def test_a_log_of_another_topic_is_put_aside(tmp_path: Path) -> None:
    async with started(tmp_path) as manager:
        fill(manager.get_or_create("t", 0, FIRST, CONFIG), [b"old"])
    async with started(tmp_path) as manager:
        log = manager.get_or_create("t", 0, SECOND, CONFIG)
        assert (log.log_end_offset, log.companions.topic_id) == (0, SECOND)
        [stray] = tmp_path.glob("t-0.*-stray")
        assert (stray / "00000000000000000000.log").stat().st_size > 0
    async with started(tmp_path) as manager:
        assert [log.companions.topic_id for log in manager.logs()] == [SECOND]


async def test_the_files_of_a_stray_log_are_kept(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    async with started(tmp_path, clock) as manager:
        fill(manager.get_or_create("t", 0, FIRST, CONFIG), [b"old"])
        manager.delete("t", 0, stray=True)
        assert manager.get("t", 0) is None
        clock.advance(10 * 60_000)
        await manager.remove_discarded()
    async with started(tmp_path, clock) as manager:
        assert list(manager.logs()) == []
        [stray] = tmp_path.glob("t-0.*-stray")
        assert (stray / "00000000000000000000.log").stat().st_size > 0


async def test_the_log_start_is_checkpointed_soon(tmp_path: Path) -> None:
    manager = new_manager(tmp_path)
    await manager.start()
    background = asyncio.create_task(manager.run())
    log = manager.get_or_create("t", 0, FIRST, CONFIG)
    fill(log, [b"v"] * 7)
    log.trimming.delete_records_before(3)
    path = tmp_path / "log-start-offset-checkpoint"
    await turns()
    background.cancel()
    crash(manager)
    assert path.read_text() == "0\n1\nt 0 3\n"
    async with started(tmp_path) as manager:
        found = manager.get("t", 0)
        assert found is not None
        assert found.log_start_offset == 3


async def test_rolled_segments_are_synced_in_the_background(tmp_path: Path) -> None:
    manager = new_manager(tmp_path)
    await manager.start()
    background = asyncio.create_task(manager.run())
    log = manager.get_or_create("t", 0, FIRST, CONFIG)
    fill(log, [b"v"] * 12)
    await turns()
    assert 0 < log.durability.recovery_point < log.log_end_offset
    assert log.durability.recovery_point == log.segments[-1].base_offset
    background.cancel()
    await manager.close()


async def test_flush_ms_syncs_what_is_due(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    async with started(tmp_path, clock) as manager:
        log = manager.get_or_create("t", 0, FIRST, LogConfig(flush_ms=500))
        other = manager.get_or_create("u", 0, SECOND, LogConfig())
        fill(log, [b"v"])
        fill(other, [b"v"])
        clock.advance(499)
        await manager.flush()
        assert log.durability.recovery_point == 0
        clock.advance(1)
        await manager.flush()
        assert (log.durability.recovery_point, other.durability.recovery_point) == (1, 0)


async def test_flush_messages_syncs_before_the_answer(tmp_path: Path) -> None:
    async with started(tmp_path) as manager:
        log = manager.get_or_create("t", 0, FIRST, LogConfig(flush_messages=3))
        fill(log, [b"v"] * 2)
        assert log.durability.recovery_point == 0
        fill(log, [b"v"])
        assert log.durability.recovery_point == 3


async def test_retention_runs_over_all_logs(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    async with started(tmp_path, clock) as manager:
        config = LogConfig(segment_bytes=400, retention_ms=1000, file_delete_delay_ms=10)
        logs = [manager.get_or_create("t", n, FIRST, config) for n in range(3)]
        for log in logs:
            fill(log, [b"v"] * 12)
        clock.advance(1001)
        assert await manager.run_retention() == 9
        assert all(log.log_start_offset == 12 for log in logs)
        assert list(tmp_path.glob("t-*/*.deleted"))
        clock.advance(10)
        await manager.remove_discarded()
        assert not list(tmp_path.glob("t-*/*.deleted"))


async def test_no_clean_mark_when_a_log_failed(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = LogManager([str(tmp_path)], ManualClock(NOW), InlineExecutor(), files=files)
    await manager.start()
    log = manager.get_or_create("t", 0, FIRST, CONFIG)
    fill(log, [b"v"])
    files.fail = lambda call, path: 5 if call == "fsync" and path.endswith(".log") else None
    with pytest.raises(KafkaError):
        log.durability.sync()
    files.fail = lambda call, path: None
    await manager.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


async def test_a_log_that_is_deleted_while_it_is_synced_has_not_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = FaultyFiles()
    manager = LogManager([str(tmp_path)], ManualClock(NOW), InlineExecutor(), files=files)
    await manager.start()
    log = manager.get_or_create("t", 0, FIRST, LogConfig(flush_ms=0))
    fill(log, [b"v"])

    def delete(call: str, path: str) -> None:
        if (call, path) == ("open", log.directory):
            manager.delete("t", 0)

    files.fail = delete
    await manager.flush()
    assert log.is_deleted
    await manager.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert "ERROR" not in capsys.readouterr().err


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        await new_manager(tmp_path / "file").start()


async def test_a_full_disk_refuses_a_new_log_and_keeps_the_others(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = LogManager([str(tmp_path)], ManualClock(NOW), InlineExecutor(), files=files)
    await manager.start()
    manager.get_or_create("t", 0, FIRST, CONFIG)
    files.fail = lambda call, path: 28 if call == "open" and "t-1/" in path else None
    with pytest.raises(KafkaError) as caught:
        manager.get_or_create("t", 1, FIRST, CONFIG)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get("t", 1) is None
    files.fail = lambda call, path: None
    assert manager.get_or_create("t", 1, FIRST, CONFIG).log_end_offset == 0
    await manager.close()


async def test_broken_checkpoints_are_done_without(tmp_path: Path) -> None:
    async with started(tmp_path) as manager:
        fill(manager.get_or_create("t", 0, FIRST, CONFIG), [b"v"] * 9)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    for name in ("recovery-point-offset", "replication-offset", "log-start-offset"):
        (tmp_path / f"{name}-checkpoint").write_text("rubbish")
    (tmp_path / "t-0" / "partition.metadata").write_text("")
    async with started(tmp_path) as manager:
        log = manager.get_or_create("t", 0, FIRST, CONFIG)
        assert len(read_values(log)) == 9
        assert log.companions.topic_id == FIRST


async def test_creating_partitions_waits_for_no_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = LogManager([str(tmp_path)], ManualClock(NOW), InlineExecutor(), files=files)
    await manager.start()
    files.calls.clear()
    for index in range(10):
        manager.get_or_create("t", index, FIRST, CONFIG).companions.assign_epoch(0)
    assert not [path for call, path in files.calls if call == "fsync"]
    # Only the segment of each partition is created at once.
    assert len(list(tmp_path.glob("t-*/*"))) == 10
    await manager.write_companions()
    assert len(list(tmp_path.glob("t-*/*"))) == 30
    await manager.close()


async def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    dirs = [tmp_path / "a", tmp_path / "b"]
    manager = LogManager([str(path) for path in dirs], ManualClock(NOW), InlineExecutor())
    await manager.start()
    for index in range(6):
        fill(manager.get_or_create("t", index, FIRST, CONFIG), [b"v"])
    assert [len(list(path.glob("t-*"))) for path in dirs] == [3, 3]
    await manager.close(4)
    manager = LogManager([str(path) for path in dirs], ManualClock(NOW), InlineExecutor())
    await manager.start()
    assert len(list(manager.logs())) == 6
    assert manager.previous_broker_epoch == 4
    await manager.close()
