"""The two starts of a log after a restart: what the checkpoint says, and what it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.log.checkpoints import LOG_START_CHECKPOINT
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.manager import LogManager
from tests.unit.log.support import NOW, FaultyFiles, batch, fill, read_values

TOPIC_ID = Uuid(b"remote topic's id")
REMOTE = LogConfig(
    segment_bytes=5 * batch(b"00").size, retention_ms=-1, local_retention_bytes=0, remote=True
)
LOCAL = replace(REMOTE, remote=False, local_retention_bytes=-2)


class Killed(BaseException):
    """The process ends here."""


async def opened(path: Path, config: LogConfig = REMOTE, files: FaultyFiles | None = None) -> Log:
    manager = LogManager([str(path)], ManualClock(NOW), InlineExecutor(), files=files)
    await manager.start(lambda _: config)
    return manager.get_or_create("t", 0, TOPIC_ID, config)


def manager_of(log: Log) -> LogManager:
    assert isinstance(log.host, LogManager)
    return log.host


def kill(log: Log) -> None:
    manager_of(log).unlock()


def starts(log: Log) -> tuple[int, int]:
    return log.log_start_offset, log.local_log_start_offset


def entries(path: Path) -> list[str]:
    return (path / LOG_START_CHECKPOINT).read_text().splitlines()[2:]


async def written(path: Path, config: LogConfig = REMOTE, files: FaultyFiles | None = None) -> Log:
    """Twelve records in segments at 0, 5 and 10, synced."""
    log = await opened(path, config, files)
    fill(log, [b"%02d" % number for number in range(12)])
    log.durability.sync()
    return log


async def trimmed(path: Path) -> Log:
    log = await written(path)
    log.remote_moved(9, 10)
    assert log.trimming.delete_old_segments(NOW) == 2
    assert starts(log) == (0, 10)
    return log


async def test_the_log_start_is_written_before_the_first_segment_goes(tmp_path: Path) -> None:
    log = await trimmed(tmp_path)
    kill(log)
    assert entries(tmp_path) == ["t 0 0"]
    log = await opened(tmp_path)
    assert starts(log) == (0, 10)
    assert list(log.companions.epochs) == [(0, 0)]
    assert log.high_watermark == 10  # what was checkpointed of it, but not below the local start
    assert read_values(log, 10) == [(10, b"10"), (11, b"11")]


async def test_a_remote_log_is_always_in_the_checkpoint(tmp_path: Path) -> None:
    log = await opened(tmp_path)
    await manager_of(log).checkpoint()
    assert entries(tmp_path) == ["t 0 0"]
    await manager_of(log).close()
    log = await opened(tmp_path, LOCAL)
    await manager_of(log).checkpoint()
    assert entries(tmp_path) == []
    log.configure(REMOTE)  # switched on while it runs
    await manager_of(log).checkpoint()
    assert entries(tmp_path) == ["t 0 0"]
    kill(log)


@pytest.mark.parametrize("clean", [False, True])
async def test_without_an_entry_the_log_begins_with_its_first_segment(
    tmp_path: Path, clean: bool
) -> None:
    """A directory of before tiering: nothing below it was ever copied."""
    log = await written(tmp_path, replace(LOCAL, retention_bytes=0))
    log.trimming.delete_old_segments(NOW)
    fill(log, [b"12"])
    if clean:
        await manager_of(log).close()
    else:
        kill(log)
    log = await opened(tmp_path)
    assert starts(log) == (12, 12)
    assert read_values(log) == [(12, b"12")]
    kill(log)


async def test_settings_that_arrive_late_do_not_lose_the_remote_part(tmp_path: Path) -> None:
    """Logs are opened before the broker has caught up with metadata."""
    kill(await trimmed(tmp_path))
    manager = LogManager([str(tmp_path)], ManualClock(NOW), InlineExecutor())
    await manager.start(lambda _: LOCAL)
    await manager.checkpoint()
    assert entries(tmp_path) == ["t 0 0"]
    log = manager.get_or_create("t", 0, TOPIC_ID, REMOTE)
    assert (starts(log), list(log.companions.epochs)) == ((0, 10), [(0, 0)])
    kill(log)


async def test_switched_off_while_it_was_down(tmp_path: Path) -> None:
    kill(await trimmed(tmp_path))
    log = await opened(tmp_path, LOCAL)
    assert (starts(log), list(log.companions.epochs)) == ((10, 10), [(0, 10)])
    await manager_of(log).checkpoint()
    assert entries(tmp_path) == []
    kill(log)


async def test_a_log_start_that_was_not_checkpointed_is_an_older_one(tmp_path: Path) -> None:
    log = await trimmed(tmp_path)
    log.trimming.delete_records_before(7)
    kill(log)
    log = await opened(tmp_path)
    assert starts(log) == (0, 10)
    log.trimming.delete_records_before(7)
    await manager_of(log).make_start_durable(log)
    kill(log)
    log = await opened(tmp_path)
    assert starts(log) == (7, 10)
    kill(log)


async def test_delete_records_above_the_local_start_is_kept(tmp_path: Path) -> None:
    log = await trimmed(tmp_path)
    log.trimming.delete_records_before(11)
    await manager_of(log).checkpoint()
    kill(log)
    log = await opened(tmp_path)
    assert starts(log) == (11, 11)
    assert read_values(log) == [(11, b"11")]
    kill(log)


async def test_no_segment_goes_if_the_log_start_cannot_be_written(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = await written(tmp_path, files=files)
    log.remote_moved(9, 10)
    files.fail = lambda call, path: 28 if LOG_START_CHECKPOINT in path else None
    with pytest.raises(KafkaError):
        log.trimming.delete_old_segments(NOW)
    assert (starts(log), log.segments[0].base_offset) == ((0, 0), 0)
    with pytest.raises(KafkaError):
        await manager_of(log).make_start_durable(log)
    files.fail = lambda call, path: None
    assert log.trimming.delete_old_segments(NOW) == 2
    kill(log)


def _nth_rename(nth: int) -> Callable[[str, str], int | None]:
    seen = 0

    def fail(call: str, path: str) -> int | None:
        nonlocal seen
        if call == "rename" and "/t-0/" in path:
            seen += 1
            if seen == nth:
                raise Killed
        return None

    return fail


@pytest.mark.parametrize("nth", range(1, 9))
async def test_killed_between_any_two_renames(tmp_path: Path, nth: int) -> None:
    files = FaultyFiles()
    log = await written(tmp_path, files=files)
    log.remote_moved(9, 10)
    files.fail = _nth_rename(nth)
    try:
        log.trimming.delete_old_segments(NOW)
        assert nth > 7
    except Killed:
        pass
    kill(log)
    log = await opened(tmp_path)
    start, local = starts(log)
    assert start == 0
    assert local == log.segments[0].base_offset in (0, 5, 10)
    assert read_values(log, local) == [(n, b"%02d" % n) for n in range(local, 12)]
    assert not list((tmp_path / "t-0").glob("*.deleted"))
    # Retention does the rest.
    log.remote_moved(9, 10)
    log.high_watermark = log.log_end_offset
    log.durability.sync()
    log.trimming.delete_old_segments(NOW)
    assert starts(log) == (0, 10)
    kill(log)


async def test_a_replica_behind_its_remote_part_opens_there(tmp_path: Path) -> None:
    log = await opened(tmp_path)
    log.truncate_fully_and_start_at(100, 40)
    kill(log)
    log = await opened(tmp_path)
    # The log start may be an older one, never a later one: the leader says the rest.
    assert (log.log_start_offset <= 40, log.local_log_start_offset) == (True, 100)
    assert (log.log_end_offset, log.latest_epoch) == (100, -1)
    kill(log)
