"""A disk that is full, broken, or loses synced data."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from tests.unit.log.support import NOW, FaultyFiles, batch, fill, open_log, read_values


def failing(call: str, part: str = "", code: int = errno.EIO) -> Callable[[str, str], int | None]:
    return lambda called, path: code if called == call and part in Path(path).name else None


def storage_error(work: Callable[[], object], *, ambiguous: bool = False) -> None:
    with pytest.raises(KafkaError) as caught:
        work()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.ambiguous is ambiguous


@pytest.mark.parametrize("room", [0, 1, 30, 69])
def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, room: int) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, [b"a", b"b"])
    files.bytes_left = room
    storage_error(lambda: log.appender.append([batch(b"lost", producer=(1, 0, 0))], 0, NOW))
    assert (log.log_end_offset, log.is_offline) == (2, False)
    assert Path(log.segments[0].log_path).stat().st_size == log.segments[0].size
    assert not len(log.producers)
    files.bytes_left = None
    log.appender.append([batch(b"c", producer=(1, 0, 0))], 0, NOW)
    assert read_values(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert read_values(open_log(tmp_path)) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class Trickle(FaultyFiles):
        def pwritev(self, descriptor, buffers, position):  # type: ignore[no-untyped-def]
            return super().pwritev(descriptor, [b"".join(buffers)[:7]], position)

    log = open_log(tmp_path, files=Trickle())
    log.appender.append([batch(b"a"), batch(b"b" * 50)], 0, NOW)
    assert read_values(log) == [(0, b"a"), (1, b"b" * 50)]
    assert read_values(open_log(tmp_path)) == [(0, b"a"), (1, b"b" * 50)]


def test_torn_bytes_that_stay_take_the_log_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, [b"a"])
    files.bytes_left = 10
    files.fail = failing("truncate")
    storage_error(lambda: log.appender.append([batch(b"lost")], 0, NOW), ambiguous=True)
    assert log.is_offline
    files.bytes_left = None
    files.fail = failing("none")
    storage_error(lambda: log.appender.append([batch(b"b")], 0, NOW))
    storage_error(lambda: log.reader.read(0, 1000, 1, min_one=True, block=True))
    # Reopening the directory finds everything acknowledged.
    assert read_values(open_log(tmp_path)) == [(0, b"a")]


@pytest.mark.parametrize("part", [".log", "leader-epoch-checkpoint", ""])
def test_a_failed_sync_is_final(tmp_path: Path, part: str) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, [b"a"])
    files.fail = failing("fsync", part)
    storage_error(log.durability.sync, ambiguous=True)
    files.fail = failing("none")
    assert log.is_offline
    assert log.durability.recovery_point == 0
    storage_error(log.durability.sync)
    storage_error(lambda: log.appender.append([batch(b"b")], 0, NOW))
    storage_error(log.close)


def test_an_append_whose_sync_failed_has_an_unknown_outcome(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(flush_messages=1), files=files)
    files.fail = failing("fsync")
    storage_error(lambda: log.appender.append([batch(b"a")], 0, NOW), ambiguous=True)
    assert log.is_offline
    assert read_values(open_log(tmp_path)) == [(0, b"a")]


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_failed_roll_is_tried_again(tmp_path: Path, suffix: str) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(segment_bytes=150), files=files)
    fill(log, [b"a", b"b"])
    files.fail = failing("open", f"00000000000000000002{suffix}", errno.ENOSPC)
    for _ in range(2):
        storage_error(lambda: log.appender.append([batch(b"c")], 0, NOW))
        assert log.log_end_offset == 2
    recovered = open_log(tmp_path, LogConfig(segment_bytes=150))
    assert read_values(recovered) == [(0, b"a"), (1, b"b")]
    files.fail = failing("none")
    fill(log, [b"c", b"d"])
    assert read_values(log) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert len(log.segments) == 2


def test_an_index_that_cannot_be_written_does_not_lose_its_entries(tmp_path: Path) -> None:
    files = FaultyFiles()
    config = LogConfig(index_interval_bytes=0)
    log = open_log(tmp_path, config, files=files)
    files.fail = failing("write", "index")
    fill(log, [b"v"] * 100)
    assert len(read_values(log)) == 100
    files.fail = failing("none")
    log.close()
    again = open_log(tmp_path, config, clean=True)
    assert len(again.segments[0].offset_index(block=True)) == 99
    assert again.segments[0].offset_index(block=True).is_sane()


def test_epochs_that_cannot_be_written_are_written_later(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    files.fail = failing("rename", "leader-epoch")
    log.companions.assign_epoch(3)
    fill(log, [b"a"], epoch=3)
    files.fail = failing("none")
    log.close()
    assert open_log(tmp_path, clean=True).latest_epoch == 3


def test_a_snapshot_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    files = FaultyFiles()
    config = LogConfig(segment_bytes=150)
    log = open_log(tmp_path, config, files=files)
    files.fail = failing("rename", ".snapshot")
    for number in range(6):
        log.appender.append([batch(b"x", producer=(1, 0, number))], 0, NOW)
    assert len(log.segments) == 3
    assert [p.last_sequence for p in open_log(tmp_path, config).producers] == [5]


def test_a_read_that_fails_says_so_and_the_log_goes_on(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, [b"a"])
    files.fail = failing("read")
    storage_error(lambda: log.reader.read(0, 1000, 1, min_one=True, block=True))
    files.fail = failing("none")
    fill(log, [b"b"])
    assert len(read_values(log)) == 2


def test_a_segment_that_retention_takes_under_a_reader_is_out_of_range(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(segment_bytes=150, retention_bytes=0), files=files)
    fill(log, [b"a", b"b", b"c"])
    raced = []

    def race(call: str, path: str) -> int | None:
        if call == "read" and path.endswith(".log") and not raced:
            raced.append(path)
            files.fail = failing("none")
            log.trimming.delete_old_segments(NOW)
            return errno.ENOENT
        return None

    files.fail = race
    with pytest.raises(KafkaError) as caught:
        log.reader.read(0, 1000, 3, min_one=True, block=True)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert raced


def test_descriptors_are_few_whatever_the_number_of_segments(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(segment_bytes=100), files=files)
    fill(log, [b"v"] * 40)
    assert len(read_values(log)) == 40
    assert len(log.segments) == 40
    assert files.open_files <= 16
