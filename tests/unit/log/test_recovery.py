from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import StorageError
from skylog.log.config import LogConfig
from skylog.log.log import Log
from tests.unit.log.support import NOW, batch, fill, open_log, read_values

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def values(count: int) -> list[bytes]:
    return [b"%02d" % n for n in range(count)]


def expected(count: int) -> list[tuple[int, bytes]]:
    return list(enumerate(values(count)))


def written(tmp_path: Path, count: int = 12) -> Log:
    """Segments of five batches each, nothing closed."""
    log = open_log(tmp_path, SMALL)
    fill(log, values(count))
    return log


def last_log(tmp_path: Path) -> Path:
    return max(tmp_path.glob("*.log"))


def test_a_clean_start_reads_only_the_tail(tmp_path: Path) -> None:
    written(tmp_path).close()
    # A flipped byte in a record shows whether checksums were read.
    first = min(tmp_path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[62] ^= 1
    first.write_bytes(data)
    log = open_log(tmp_path, SMALL, clean=True)
    assert (log.log_end_offset, log.durability.recovery_point) == (12, 12)
    assert open_log(tmp_path, SMALL).log_end_offset == 0


@pytest.mark.parametrize("cut", [1, 20, 61, 70])
def test_a_torn_tail_is_cut(tmp_path: Path, cut: int) -> None:
    written(tmp_path)
    path = last_log(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    log = open_log(tmp_path, SMALL)
    assert read_values(log) == expected(11)
    fill(log, [b"next"])
    assert read_values(log)[-2:] == [(10, b"10"), (11, b"next")]
    log.close()
    assert read_values(open_log(tmp_path, SMALL, clean=True))[-1] == (11, b"next")


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff" * 30, b"\0" * 11, b"garbage" * 50])
def test_garbage_after_the_last_batch_is_cut(tmp_path: Path, tail: bytes) -> None:
    written(tmp_path)
    path = last_log(tmp_path)
    path.write_bytes(path.read_bytes() + tail)
    log = open_log(tmp_path, SMALL)
    assert read_values(log) == expected(12)
    assert path.stat().st_size == log.segments[-1].size


def test_the_first_bad_batch_ends_the_log(tmp_path: Path) -> None:
    log = written(tmp_path)
    segment = log.segments[1]
    position = segment.position_of(7, block=True)
    assert position is not None
    path = Path(segment.log_path)
    data = bytearray(path.read_bytes())
    data[position + 62] ^= 0x40
    path.write_bytes(data)
    log = open_log(tmp_path, SMALL)
    assert read_values(log) == expected(7)
    assert [s.base_offset for s in log.segments] == [0, 5]
    # Snapshots of lost records must not be used with other records.
    assert all(int(p.stem) <= 7 for p in tmp_path.glob("*.snapshot"))


def test_records_before_the_recovery_point_are_not_checked(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.durability.sync()
    first = min(tmp_path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[62] ^= 1
    first.write_bytes(data)
    assert (
        open_log(tmp_path, SMALL, recovery_point=log.durability.recovery_point).log_end_offset == 12
    )


def test_a_segment_after_a_hole_goes(tmp_path: Path) -> None:
    log = written(tmp_path)
    size = batch(b"00").size
    path = Path(log.segments[1].log_path)
    path.write_bytes(path.read_bytes()[: 2 * size])
    log = open_log(tmp_path, SMALL)
    assert read_values(log) == expected(7)
    fill(log, [b"new"])
    assert read_values(log)[-1] == (7, b"new")


def test_indexes_are_rebuilt_as_they_were(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=100))
    for number in range(40):
        log.appender.append([batch(b"%02d" % number, timestamp=NOW + number % 7)], 0, NOW)
    log.close()
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*index")}
    assert len(kept) == 2
    assert all(kept.values())
    for path in tmp_path.glob("*index"):
        path.write_bytes(b"rubbish")
    open_log(tmp_path, LogConfig(index_interval_bytes=100))
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*index")} == kept


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_a_missing_index_is_rebuilt_even_after_a_clean_shutdown(
    tmp_path: Path, suffix: str
) -> None:
    written(tmp_path).close()
    for path in tmp_path.glob(f"*.{suffix}"):
        path.unlink()
    log = open_log(tmp_path, SMALL, clean=True)
    assert read_values(log) == expected(12)
    assert log.reader.offset_for_timestamp(NOW, block=True) == (NOW, 0, 0)


def test_preallocated_indexes_of_kafka_are_understood(tmp_path: Path) -> None:
    written(tmp_path).close()
    for path in tmp_path.glob("*index"):
        path.write_bytes(path.read_bytes() + bytes(1200))
    log = open_log(tmp_path, SMALL, clean=True)
    assert read_values(log) == expected(12)
    fill(log, values(12))
    log.close()
    assert len(read_values(open_log(tmp_path, SMALL, clean=True))) == 24


def test_leader_epochs_are_found_again_in_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    for epoch in (2, 2, 5, 9):
        fill(log, [b"v"], epoch=epoch)
    (tmp_path / "leader-epoch-checkpoint").write_text("broken")
    log = open_log(tmp_path, SMALL)
    assert [log.epoch_of(offset) for offset in range(4)] == [2, 2, 5, 9]
    assert log.epoch_end_offset(5) == (5, 3)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n2 0\n5 2\n9 3\n"


def test_epochs_beyond_the_end_go_with_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, [b"a"], epoch=1)
    fill(log, [b"b"], epoch=2)
    path = last_log(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    log = open_log(tmp_path)
    assert (log.log_end_offset, log.latest_epoch) == (1, 1)


def test_left_overs_are_cleared(tmp_path: Path) -> None:
    written(tmp_path).close()
    rubbish = [
        "00000000000000000000.log.deleted",
        "00000000000000000003.snapshot.deleted",
        "00000000000000000005.log.cleaned",
        "00000000000000000099.index",
        "00000000000000000099.timeindex",
    ]
    for name in rubbish:
        (tmp_path / name).write_bytes(b"x")
    assert open_log(tmp_path, SMALL, clean=True).log_end_offset == 12
    assert not [name for name in rubbish if (tmp_path / name).exists()]


def test_a_copy_of_compaction_that_is_broken_keeps_the_log_closed(tmp_path: Path) -> None:
    written(tmp_path).close()
    (tmp_path / "00000000000000000000.log.swap").write_bytes(b"x")
    with pytest.raises(StorageError, match=r"log\.swap"):
        open_log(tmp_path, SMALL)


def test_an_empty_segment_inside_another_goes(tmp_path: Path) -> None:
    written(tmp_path).close()
    (tmp_path / "00000000000000000011.log").write_bytes(b"")
    for clean in (True, False):
        log = open_log(tmp_path, SMALL, clean=clean)
        assert read_values(log) == expected(12)
        assert [s.base_offset for s in log.segments] == [0, 5, 10]


def test_a_log_start_above_the_end_begins_a_new_log(tmp_path: Path) -> None:
    written(tmp_path).close()
    log = open_log(tmp_path, SMALL, clean=True, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert [s.base_offset for s in log.segments] == [50]
    assert log.latest_epoch == -1


def test_the_log_start_survives(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.trimming.delete_records_before(7)
    log = open_log(tmp_path, SMALL, log_start_offset=7)
    assert log.log_start_offset == 7
    assert read_values(log) == expected(12)[7:]


def test_a_broken_tail_is_found_even_after_a_clean_shutdown(tmp_path: Path) -> None:
    written(tmp_path).close()
    path = last_log(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    assert read_values(open_log(tmp_path, SMALL, clean=True)) == expected(11)


def test_a_batch_larger_than_the_scan_window_is_recovered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, [b"a", b"x" * (3 << 20), b"b"])
    assert [len(v or b"") for _, v in read_values(open_log(tmp_path))] == [1, 3 << 20, 1]
