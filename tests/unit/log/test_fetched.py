"""What a follower appends from its leader: whole batches, in one write, unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.fetched import check_fetched, covers, parts_within
from skylog.log.files import Files
from skylog.log.log import Log
from tests.unit.log.support import batch, open_log


def leader(directory: Path, epochs: tuple[int, ...] = (0, 0, 1)) -> Log:
    log = open_log(directory / "leader-0")
    for epoch in epochs:
        log.appender.append([batch(b"one", b"two")], epoch, 1)
    return log


def everything(log: Log, offset: int = 0) -> memoryview:
    return log.reader.read(offset, 1 << 20, log.log_end_offset, min_one=True, block=True).buffer


class CountingFiles(Files):
    """Counts the buffers of each write."""

    def __init__(self) -> None:
        super().__init__(16)
        self.writes: list[int] = []

    def write_all(self, path: str, buffers: list, position: int) -> None:  # type: ignore[override,type-arg]
        if path.endswith(".log"):
            self.writes.append(len(buffers))
        super().write_all(path, buffers, position)


def test_fetched_bytes_are_written_as_they_are_in_one_write(tmp_path: Path) -> None:
    source, files = leader(tmp_path), CountingFiles()
    follower = open_log(tmp_path / "follower-0", files=files)
    fetched = check_fetched(everything(source), 1)
    assert len(fetched.batches) == 3
    follower.appender.append_as_follower(fetched.batches, 1, fetched.buffer)
    assert files.writes == [1]
    assert bytes(everything(follower)) == bytes(everything(source))
    assert (follower.log_end_offset, follower.latest_epoch) == (6, 1)
    assert [follower.epoch_end_offset(epoch) for epoch in (0, 1)] == [(0, 4), (1, 6)]
    for name in ("00000000000000000000.log", "leader-epoch-checkpoint"):
        follower.companions.write()
        source.companions.write()
        found = (tmp_path / "follower-0" / name).read_bytes()
        assert found == (tmp_path / "leader-0" / name).read_bytes()


def test_a_batch_that_was_cut_off_waits_for_the_next_fetch(tmp_path: Path) -> None:
    data = everything(leader(tmp_path))
    for left in (1, 30, 80):
        fetched = check_fetched(data[:-left], 1)
        assert [b.base_offset for b in fetched.batches] == [0, 2]
        assert len(fetched.buffer) == sum(b.size for b in fetched.batches)
    assert check_fetched(b"", 1).batches == []


def test_batches_of_a_later_epoch_are_left_out(tmp_path: Path) -> None:
    data = everything(leader(tmp_path, (0, 2, 0)))
    fetched = check_fetched(data, 1)
    assert [b.base_offset for b in fetched.batches] == [0]


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (8, 0x80),  # a negative length
        (11, 3),  # shorter than a header
        (16, 1),  # an old magic
        (23, 0x80),  # a negative delta
        (70, 99),  # a damaged record
    ],
)
def test_damage_is_found(tmp_path: Path, position: int, value: int) -> None:
    data = bytearray(everything(leader(tmp_path)))
    if position == 11:
        data[8:11] = b"\0\0\0"
    data[position] = value
    with pytest.raises(KafkaError) as refused:
        check_fetched(data, 1)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_parts_fit_into_segments(tmp_path: Path) -> None:
    source = leader(tmp_path, (0,) * 7)
    fetched = check_fetched(everything(source), 0)
    size = fetched.batches[0].size
    assert list(parts_within(fetched, 7 * size)) == [fetched]
    parts = list(parts_within(fetched, 3 * size))
    assert [len(part.batches) for part in parts] == [3, 3, 1]
    assert b"".join(part.buffer for part in parts) == bytes(fetched.buffer)
    assert [len(part.batches) for part in parts_within(fetched, 1)] == [1] * 7
    follower = open_log(tmp_path / "f-0", LogConfig(segment_bytes=3 * size))
    for part in parts:
        follower.appender.append_as_follower(part.batches, 1, part.buffer)
    assert len(follower.segments) == 3
    assert follower.log_end_offset == source.log_end_offset


def test_whether_a_batch_holds_an_offset(tmp_path: Path) -> None:
    batches = check_fetched(everything(leader(tmp_path)), 1).batches
    assert [covers(batches, offset) for offset in (0, 1, 2)] == [False, True, False]
    assert not covers([], 0)


def test_an_epoch_without_records_is_cut_off_too(tmp_path: Path) -> None:
    """A leader that wrote nothing has an epoch that the next leader may not know."""
    log = open_log(tmp_path / "t-0")
    log.appender.append([batch(b"one")], 3, 1)
    log.companions.assign_epoch(5)
    assert log.latest_epoch == 5
    log.truncate_to(1)
    assert (log.latest_epoch, log.log_end_offset) == (3, 1)
    checkpoint = (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text()
    assert checkpoint.splitlines()[2:] == ["3 0"]
