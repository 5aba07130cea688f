from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.segment import Segment
from tests.unit.log.support import NOW, batch, fill, open_log, read_values

SIZE = batch(b"00").size
FIVE_PER_SEGMENT = 5 * SIZE


def written(
    tmp_path: Path,
    count: int = 12,
    *,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    cleanup_policy: frozenset[str] = frozenset({"delete"}),
) -> Log:
    """Segments at 0, 5 and 10; record n has the time NOW + n."""
    config = LogConfig(
        segment_bytes=FIVE_PER_SEGMENT,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        cleanup_policy=cleanup_policy,
    )
    log = open_log(tmp_path, config)
    for number in range(count):
        log.appender.append([batch(b"%02d" % number, timestamp=NOW + number)], 0, NOW)
    log.high_watermark = log.log_end_offset
    return log


def test_old_segments_go_by_their_latest_record(tmp_path: Path) -> None:
    log = written(tmp_path, retention_ms=100)
    assert log.trimming.delete_old_segments(NOW + 104) == 0
    assert log.trimming.delete_old_segments(NOW + 105) == 1
    assert log.log_start_offset == 5
    assert read_values(log)[0] == (5, b"05")


def test_the_last_segment_goes_too_and_offsets_go_on(tmp_path: Path) -> None:
    log = written(tmp_path, retention_ms=100)
    assert log.trimming.delete_old_segments(NOW + 10_000) == 3
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)
    assert log.trimming.delete_old_segments(NOW + 20_000) == 0
    fill(log, [b"next"])
    assert read_values(log) == [(12, b"next")]


@pytest.mark.parametrize(
    ("keep", "gone"), [(12, 0), (8, 0), (7, 1), (6, 1), (3, 1), (2, 2), (1, 2), (0, 3)]
)
def test_size_keeps_at_least_what_it_says(tmp_path: Path, keep: int, gone: int) -> None:
    log = written(tmp_path, retention_bytes=keep * SIZE)
    assert log.trimming.delete_old_segments(NOW) == gone
    assert log.size >= keep * SIZE


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = written(tmp_path, retention_ms=100, retention_bytes=0)
    log.high_watermark = 9
    assert log.trimming.delete_old_segments(NOW + 10_000) == 1
    log.high_watermark = 11
    assert log.trimming.delete_old_segments(NOW + 10_000) == 1
    assert log.log_start_offset == 10


def test_compaction_alone_deletes_below_the_start_only(tmp_path: Path) -> None:
    log = written(tmp_path, retention_ms=1, cleanup_policy=frozenset({"compact"}))
    assert log.trimming.delete_old_segments(NOW + 10_000) == 0
    log.trimming.delete_records_before(6)
    assert log.trimming.delete_old_segments(NOW + 10_000) == 1


def test_deleted_records_are_gone_at_once_and_their_segments_later(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert log.trimming.delete_records_before(7) == 7
    assert log.trimming.delete_records_before(3) == 7
    assert read_values(log)[0] == (7, b"07")
    assert log.size == 12 * SIZE
    assert log.trimming.delete_old_segments(NOW) == 1
    assert log.size == 7 * SIZE
    with pytest.raises(KafkaError) as caught:
        log.trimming.delete_records_before(13)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_epochs_start_no_earlier_than_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (1, 1, 4, 4):
        fill(log, [b"x"], epoch=epoch)
    log.trimming.delete_records_before(3)
    assert log.epoch_of(3) == 4
    assert log.epoch_end_offset(1) == (1, 3)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n4 3\n"


def test_a_file_without_timestamps_ages_by_its_modification(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(retention_ms=1000))
    log.appender.append([batch(b"x", timestamp=-1)], 0, NOW)
    log.high_watermark = 1
    modified = log.segments[0].modified_ms
    assert log.trimming.delete_old_segments(modified + 1000) == 0
    assert log.trimming.delete_old_segments(modified + 1001) == 1


def test_after_a_restart_ages_come_from_the_index(tmp_path: Path) -> None:
    log = written(tmp_path, retention_ms=100)
    config = log.config
    log.close()
    log = open_log(tmp_path, config, clean=True)
    log.high_watermark = log.log_end_offset
    assert log.trimming.delete_old_segments(NOW + 104) == 0
    assert log.trimming.delete_old_segments(NOW + 105) == 1


def test_deleted_files_carry_the_suffix_until_the_delay_is_over(tmp_path: Path) -> None:
    discarded: list[str] = []

    class Host:
        def discard(self, log: object, paths: list[str]) -> None:
            discarded.extend(paths)

        def rolled(self, log: object) -> None: ...
        def pin_start(self, log: object) -> None: ...
        def start_moved(self, log: object) -> None: ...
        def failed(self, log: object) -> None: ...
        def unwritten(self, log: object) -> None: ...

    log = written(tmp_path)
    log.host = Host()  # type: ignore[assignment]
    log.trimming.delete_records_before(10)
    log.trimming.delete_old_segments(NOW)
    names = sorted(Path(path).name for path in discarded)
    assert names == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
        "00000000000000000005.index.deleted",
        "00000000000000000005.log.deleted",
        "00000000000000000005.snapshot.deleted",
        "00000000000000000005.timeindex.deleted",
    ]
    assert all(Path(path).exists() for path in discarded)


@pytest.mark.parametrize("is_closed", [False, True])
def test_deleted_records_are_synced_with_the_segment_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_closed: bool
) -> None:
    """A power failure must not leave a part of them: a log that was closed is opened unread, and
    one that was not would end before its log start."""
    log = written(tmp_path, count=3)
    log.trimming.delete_records_before(3)
    synced: list[str] = []
    monkeypatch.setattr(Segment, "sync_log", lambda segment: synced.append(segment.log_path))
    (log.close if is_closed else log.durability.sync)()
    assert synced == [log.segments[0].log_path]
    assert log.durability.recovery_point == 3
