"""A log whose first part is in the object store only: its two starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.closed import ClosedSegment
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.reader import MovedToRemote
from skylog.log.restoring import restore
from tests.unit.log.support import (
    NOW,
    UNVERIFIED,
    batch,
    end_transaction,
    fill,
    open_log,
    read_values,
)

SIZE = batch(b"00").size
REMOTE = LogConfig(
    segment_bytes=5 * SIZE,
    retention_ms=-1,
    local_retention_bytes=0,
    remote_storage_enable=True,
    remote=True,
)


def written(tmp_path: Path, config: LogConfig = REMOTE, count: int = 12) -> Log:
    """Segments at 0, 5 and 10, in leader epochs 0 and, from 7 on, 1; all is committed."""
    log = open_log(tmp_path, config)
    for number in range(count):
        placed = batch(b"%02d" % number, timestamp=NOW + number)
        log.appender.append([placed], int(number >= 7), NOW)
    log.high_watermark = log.log_end_offset
    log.durability.sync()
    return log


def starts(log: Log) -> tuple[int, int]:
    return log.log_start_offset, log.local_log_start_offset


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def closed(log: Log, offset: int) -> list[ClosedSegment]:
    return log.closed_segments(offset, log.last_stable_offset)


def read(log: Log, offset: int) -> None:
    log.reader.read(offset, 100, log.log_end_offset, min_one=True, block=True)


def test_nothing_goes_before_what_stays_is_durable(tmp_path: Path) -> None:
    log = open_log(tmp_path, REMOTE)
    fill(log, [b"%02d" % number for number in range(12)])
    log.remote_moved(9, 10)
    assert log.trimming.delete_old_segments(NOW) == 0
    log.durability.sync_rolled()
    assert log.trimming.delete_old_segments(NOW) == 2


def test_nothing_goes_before_it_is_remote(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert log.trimming.delete_old_segments(NOW) == 0
    log.remote_moved(8, 5)  # 8 is remote, but from 5 on there is a gap
    assert log.trimming.delete_old_segments(NOW) == 1
    assert starts(log) == (0, 5)
    assert log.trimming.delete_old_segments(NOW) == 0


def test_only_the_local_start_moves_and_epochs_stay(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.remote_moved(9, 10)
    assert log.trimming.delete_old_segments(NOW) == 2
    assert starts(log) == (0, 10)
    assert list(log.companions.epochs) == [(0, 0), (1, 7)]
    assert read_values(log, 10) == [(10, b"10"), (11, b"11")]
    for offset in (0, 9):
        with pytest.raises(MovedToRemote) as moved:
            read(log, offset)
        assert moved.value.offset == offset
        assert moved.value.code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    with pytest.raises(KafkaError) as beyond:
        read(log, 13)
    assert beyond.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_last_segment_is_rolled_to_be_copied_and_goes_then(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.remote_moved(9, 10)
    assert log.trimming.delete_old_segments(NOW) == 2
    assert bases(log) == [10, 12]
    assert [one.base_offset for one in closed(log, 10)] == [10]
    log.remote_moved(11, 12)
    log.durability.sync_rolled()
    assert log.trimming.delete_old_segments(NOW) == 1
    assert (bases(log), starts(log)) == ([12], (0, 12))
    assert log.trimming.delete_old_segments(NOW) == 0


def test_delete_records_moves_both_starts_once_it_passes_the_local_one(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.remote_moved(4, 5)
    log.trimming.delete_old_segments(NOW)
    assert log.trimming.delete_records_before(3) == 3
    assert starts(log) == (3, 5)
    with pytest.raises(KafkaError) as gone:
        read(log, 2)
    assert gone.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(MovedToRemote):
        read(log, 3)
    assert log.trimming.delete_records_before(8) == 8
    assert starts(log) == (8, 8)
    assert list(log.companions.epochs) == [(1, 8)]


def test_what_the_log_start_has_passed_needs_no_copy(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.trimming.delete_records_before(5)
    assert log.trimming.delete_old_segments(NOW) == 1
    assert (bases(log)[0], starts(log)) == (5, (5, 5))


def test_closed_segments_end_below_the_last_stable_offset(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert [(one.base_offset, one.next_offset) for one in closed(log, 0)] == [
        (0, 5),
        (5, 10),
    ]
    assert [one.base_offset for one in closed(log, 5)] == [5]
    log.high_watermark = 9
    found = closed(log, 0)
    assert [one.base_offset for one in found] == [0]
    assert (found[0].size, found[0].max_timestamp) == (5 * SIZE, NOW + 4)
    for path in (found[0].log, found[0].offset_index, found[0].time_index):
        assert Path(path).exists()
    assert found[0].transaction_index is None
    assert Path(found[0].producer_snapshot).name == f"{5:020}.snapshot"


def test_a_log_goes_on_behind_its_remote_part(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.truncate_fully_and_start_at(100, 40)
    restore(log, [(0, 0), (3, 60)], [])
    assert (starts(log), log.log_end_offset, log.high_watermark) == ((40, 100), 100, 100)
    assert list(log.companions.epochs) == [(0, 40), (3, 60)]
    with pytest.raises(MovedToRemote):
        read(log, 40)
    log.truncate_fully_and_start_at(200)
    assert (starts(log), log.log_end_offset) == ((200, 200), 200)


def test_truncation_below_the_local_start_keeps_the_log_start(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.remote_moved(9, 10)
    log.trimming.delete_old_segments(NOW)
    log.truncate_to(8)
    assert (starts(log), log.log_end_offset) == ((0, 8), 8)
    # Its producers are not known either: it has no history, until that is taken from there.
    assert (log.latest_epoch, log.size) == (-1, 0)
    # What follows are other records: those in the object store do not cover them.
    assert (log.highest_remote_offset, log.remote_end) == (7, 8)


def test_without_tiering_the_log_begins_where_it_does_on_this_disk(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.remote_moved(9, 10)
    log.trimming.delete_old_segments(NOW)
    log.configure(LogConfig(segment_bytes=5 * SIZE))
    assert starts(log) == (10, 10)
    assert list(log.companions.epochs) == [(1, 10)]


def test_copying_switched_off_lets_the_total_limits_hold_here(tmp_path: Path) -> None:
    config = replace(REMOTE, remote_log_copy_disable=True, retention_bytes=2 * SIZE)
    log = written(tmp_path, replace(REMOTE, local_retention_bytes=-1))
    log.remote_moved(4, 5)
    log.configure(config)
    assert log.trimming.delete_old_segments(NOW) == 2
    assert starts(log) == (10, 10)
    assert list(log.companions.epochs) == [(1, 10)]


@pytest.mark.parametrize(
    ("policy", "gone"), [({"delete"}, 2), (set(), 2), ({"compact"}, 0), ({"compact", "delete"}, 2)]
)
def test_an_empty_policy_keeps_records_but_not_on_this_disk(
    tmp_path: Path, policy: set[str], gone: int
) -> None:
    is_remote = "compact" not in policy
    log = written(
        tmp_path,
        replace(
            REMOTE, cleanup_policy=frozenset(policy), remote=is_remote, retention_bytes=2 * SIZE
        ),
    )
    log.remote_moved(9, 10)
    assert log.trimming.delete_old_segments(NOW) == gone
    assert starts(log)[0] == (0 if is_remote else gone * 5)


def test_local_limits_are_the_total_ones_unless_set(tmp_path: Path) -> None:
    total = replace(REMOTE, local_retention_bytes=-2, retention_bytes=7 * SIZE)
    log = written(tmp_path, total)
    log.remote_moved(9, 10)
    assert log.trimming.delete_old_segments(NOW) == 1
    log.configure(replace(total, local_retention_ms=100))
    assert log.trimming.delete_old_segments(NOW + 109) == 0
    assert log.trimming.delete_old_segments(NOW + 110) == 1
    assert bases(log) == [10]


def test_the_last_segment_stays_while_one_before_it_does(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.remote_moved(4, 5)
    log.trimming.delete_old_segments(NOW)
    assert bases(log) == [5, 10]


def test_a_lost_snapshot_is_taken_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, REMOTE)
    for number in range(12):
        placed = batch(b"%02d" % number, producer=(7 + number % 2, 0, number // 2))
        log.appender.append([placed], 0, NOW)
    log.high_watermark = log.log_end_offset
    first, second = closed(log, 0)
    expected = {name: Path(name).read_bytes() for name in (first[-1], second[-1])}
    Path(first.producer_snapshot).unlink()
    Path(second.producer_snapshot).write_bytes(b"torn")
    for segment in (second, first):
        log.snapshots.require(segment.next_offset)
        assert Path(segment.producer_snapshot).read_bytes() == expected[segment.producer_snapshot]


def test_aborted_transactions_have_a_file_only_if_there_are_any(tmp_path: Path) -> None:
    log = open_log(tmp_path, REMOTE)
    placed = batch(b"a", producer=(7, 0, 0), transactional=True)
    log.appender.append([placed], 0, NOW, UNVERIFIED)
    fill(log, [b"%02d" % number for number in range(9)])
    assert closed(log, 0) == []  # the transaction is open
    end_transaction(log, 7, commit=False)
    fill(log, [b"%02d" % number for number in range(9)])
    found = closed(log, 0)
    names = [one.transaction_index for one in found]
    assert names[0] is None
    (index,) = filter(None, names)
    assert Path(index).stat().st_size == 34


def test_a_log_of_one_segment_has_nothing_to_copy(tmp_path: Path) -> None:
    assert closed(written(tmp_path, count=3), 0) == []
    assert closed(open_log(tmp_path / "empty", REMOTE), 0) == []


def test_a_sync_that_was_put_off_is_asked_for_again(tmp_path: Path) -> None:
    asked: list[Log] = []

    class Host(LogHost):
        def rolled(self, log: Log) -> None:
            asked.append(log)

    log = open_log(tmp_path, REMOTE, host=Host(Files(16)))
    fill(log, [b"%02d" % number for number in range(12)])
    log.remote_moved(9, 10)
    asked.clear()
    assert log.trimming.delete_old_segments(NOW) == 0
    assert asked == [log]
    log.durability.sync_rolled()
    assert log.trimming.delete_old_segments(NOW) == 2


def test_a_log_start_that_is_lost_is_not_written_down_before_it_is_learned(tmp_path: Path) -> None:
    log = open_log(tmp_path, REMOTE)
    log.truncate_fully_and_start_at(10, 4)
    log.appender.append([batch(b"a")], 0, NOW)
    log.close()
    # The entry of its log start is gone.
    again = open_log(tmp_path, REMOTE)
    assert (starts(again), again.knows_start) == ((10, 10), False)
    again.remote_moved(9, 10)
    assert again.trimming.delete_old_segments(NOW) == 0
    again.trimming.learn_start(4)
    assert (starts(again), again.knows_start) == ((4, 10), True)
