from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.rolling import jitter_ms
from skylog.log.segment import RELATIVE_OFFSET_MAX
from skylog.wire.batch import Batch
from tests.unit.log.support import NOW, batch, fill, open_log, read_values


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_full_segment_is_followed_by_another(tmp_path: Path) -> None:
    size = batch(b"0").size
    log = open_log(tmp_path, LogConfig(segment_bytes=3 * size))
    fill(log, [b"%d" % n for n in range(7)])
    assert bases(log) == [0, 3, 6]
    assert read_values(log) == [(n, b"%d" % n) for n in range(7)]
    assert sorted(path.name for path in tmp_path.glob("*.snapshot")) == [
        "00000000000000000003.snapshot",
        "00000000000000000006.snapshot",
    ]


def test_time_rolls_by_the_records_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    log.appender.append([batch(b"a", timestamp=5000)], 0, NOW)
    log.appender.append([batch(b"b", timestamp=6000)], 0, NOW + 10**9)
    assert bases(log) == [0]
    log.appender.append([batch(b"c", timestamp=6001)], 0, NOW)
    assert bases(log) == [0, 2]


def test_without_timestamps_time_rolls_by_the_wall_clock(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for _ in range(2):
        log.appender.append([batch(b"a", timestamp=-1)], 0, clock.now_ms())
    clock.advance(1001)
    log.appender.append([batch(b"b", timestamp=-1)], 0, clock.now_ms())
    assert bases(log) == [0, 2]


def test_a_reopened_segment_knows_when_it_began(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1000)
    log = open_log(tmp_path, config)
    log.appender.append([batch(b"a", timestamp=5000)], 0, NOW)
    log.close()
    log = open_log(tmp_path, config, clean=True)
    log.appender.append([batch(b"b", timestamp=6001)], 0, NOW)
    assert bases(log) == [0, 1]


def test_the_deadline_of_compaction_rolls_too(tmp_path: Path) -> None:
    config = LogConfig(max_compaction_lag_ms=10, cleanup_policy=frozenset({"compact"}))
    log = open_log(tmp_path, config)
    log.appender.append([batch(b"a", timestamp=5000)], 0, NOW)
    log.appender.append([batch(b"b", timestamp=5011)], 0, NOW)
    assert bases(log) == [0, 1]


@pytest.mark.parametrize("bytes_max", [16, 24, 36, 40])
def test_full_indexes_roll(tmp_path: Path, bytes_max: int) -> None:
    log = open_log(tmp_path, LogConfig(segment_index_bytes=bytes_max, index_interval_bytes=0))
    for number in range(9):
        log.appender.append([batch(b"x", timestamp=NOW + number)], 0, NOW)
    index = log.segments[0].offset_index(block=True)
    times = log.segments[0].time_index(block=True)
    assert len(log.segments) > 1
    assert len(index) <= index.entries_max
    assert len(times) <= times.entries_max
    assert len(read_values(log)) == 9


def test_offsets_that_do_not_fit_an_index_roll(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, [b"a"])

    def placed(offset: int) -> Batch:
        found = batch(b"b")
        found.base_offset = offset
        found.buffer[:8] = offset.to_bytes(8, "big")  # type: ignore[index]
        return found

    log.appender.append_as_follower([placed(RELATIVE_OFFSET_MAX)])
    assert bases(log) == [0]
    log.appender.append_as_follower([placed(RELATIVE_OFFSET_MAX + 1)])
    assert bases(log) == [0, RELATIVE_OFFSET_MAX + 1]
    assert [offset for offset, _ in read_values(log)] == [
        0,
        RELATIVE_OFFSET_MAX,
        RELATIVE_OFFSET_MAX + 1,
    ]


def test_indexes_are_sparse_and_name_batches_by_their_last_offset(tmp_path: Path) -> None:
    size = batch(b"00").size
    log = open_log(tmp_path, LogConfig(index_interval_bytes=3 * size))
    for number in range(20):
        log.appender.append([batch(b"%02d" % number, timestamp=NOW + number)], 0, NOW)
    index = log.segments[0].offset_index(block=True)
    entries = [index.at(slot) for slot in range(len(index))]
    # An entry is due once more than the interval has gone by since the last one.
    assert entries == [(4, 4 * size), (8, 8 * size), (12, 12 * size), (16, 16 * size)]
    times = log.segments[0].time_index(block=True)
    assert [times.at(slot) for slot in range(len(times))] == [
        (NOW + offset, offset) for offset in (4, 8, 12, 16)
    ]


def test_jitter_differs_by_segment_and_stays_below_its_limit(tmp_path: Path) -> None:
    config = LogConfig(segment_jitter_ms=1000)
    logs = [open_log(tmp_path / str(number), config) for number in range(10)]
    jitters = {jitter_ms(log.segments[0], config) for log in logs}
    assert len(jitters) > 5
    assert all(0 <= jitter < 1000 for jitter in jitters)
