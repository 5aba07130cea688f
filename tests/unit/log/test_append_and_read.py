from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.files import Files, WouldBlock
from skylog.log.log import Log
from skylog.wire.batch import HEADER_BYTES, Batch, split_batches
from skylog.wire.records import decode_records
from tests.unit.log.support import NOW, FaultyFiles, batch, fill, open_log, read_values


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Ten batches of three records, offsets 0 to 29."""
    found = open_log(tmp_path, LogConfig(index_interval_bytes=200))
    for number in range(10):
        values = [b"%02d" % (3 * number + i) for i in range(3)]
        found.appender.append([batch(*values)], 7, NOW)
    found.high_watermark = 30
    return found


def read(
    log: Log, offset: int, max_bytes: int = 1 << 20, limit: int = 30, min_one: bool = True
) -> list[Batch]:
    info = log.reader.read(offset, max_bytes, limit, min_one=min_one, block=False)
    return list(split_batches(info.buffer))


def test_offsets_are_dense_and_the_epoch_is_the_leaders(log: Log) -> None:
    info = log.appender.append([batch(b"x", b"y"), batch(b"z")], 8, NOW + 5)
    assert info == (30, 32, 0, False, NOW)
    assert log.log_end_offset == 33
    assert log.latest_epoch == 8
    found = read(log, 30, limit=33)
    assert [(b.base_offset, b.leader_epoch, b.crc_ok()) for b in found] == [
        (30, 8, True),
        (32, 8, True),
    ]


def test_a_read_starts_at_the_batch_that_holds_the_offset(log: Log) -> None:
    for offset in range(30):
        assert read(log, offset)[0].base_offset == offset - offset % 3
    assert read_values(log) == [(n, b"%02d" % n) for n in range(30)]


def test_a_read_takes_whole_batches_within_the_limit(log: Log) -> None:
    size = read(log, 0)[0].size
    assert len(read(log, 6, size * 2 + 40)) == 2
    assert len(read(log, 6, size * 2)) == 2
    assert len(read(log, 6, size * 2 - 1)) == 1


@pytest.mark.parametrize("max_bytes", [0, 1, HEADER_BYTES, HEADER_BYTES + 1])
def test_only_the_first_read_may_exceed_its_limit(log: Log, max_bytes: int) -> None:
    assert [b.base_offset for b in read(log, 9, max_bytes)] == [9]
    assert read(log, 9, max_bytes, min_one=False) == []


def test_nothing_at_or_above_the_limit_is_shown(log: Log) -> None:
    assert [b.base_offset for b in read(log, 3, limit=9)] == [3, 6]
    assert read(log, 9, limit=9) == []
    assert read(log, 12, limit=9) == []
    # A limit inside a batch hides the whole batch.
    assert [b.base_offset for b in read(log, 3, limit=8)] == [3]


def test_outside_of_the_log_is_out_of_range(log: Log) -> None:
    assert read(log, 30) == []
    log.trimming.delete_records_before(5)
    for offset in (-1, 4, 31):
        with pytest.raises(KafkaError) as caught:
            read(log, offset)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(log, 5)[0].base_offset == 3


def test_reads_in_order_find_their_place_without_searching(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(index_interval_bytes=100), files=files)
    fill(log, [b"v" * 100] * 50)
    log.reader.read(0, 1000, 50, min_one=True, block=False)
    files.calls.clear()
    offset = 0
    while offset < 50:
        info = log.reader.read(offset, 1000, 50, min_one=True, block=False)
        offset = list(split_batches(info.buffer))[-1].next_offset
    reads = sum(call == "peek" for call, _ in files.calls)
    # One read each, and one more if the first read had to search.
    assert reads <= -(-50 // 5) + 1


def test_a_read_only_buffer_is_copied_not_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    given = bytes(batch(b"x").buffer)
    log.appender.append([Batch(given)], 3, NOW)
    assert given == bytes(batch(b"x").buffer)
    assert read(log, 0, limit=1)[0].leader_epoch == 3


def test_bytes_that_are_not_cached_are_left_to_a_thread(tmp_path: Path) -> None:
    class Cold(Files):
        def preadv(self, descriptor, buffer, position, *, block):  # type: ignore[no-untyped-def]
            if not block:
                raise BlockingIOError
            return super().preadv(descriptor, buffer, position, block=True)

    log = open_log(tmp_path, files=Cold(16))
    fill(log, [b"a", b"b"])
    with pytest.raises(WouldBlock):
        log.reader.read(0, 1000, 2, min_one=True, block=False)
    assert (
        len(list(split_batches(log.reader.read(0, 1000, 2, min_one=True, block=True).buffer))) == 2
    )


def test_half_cached_bytes_give_the_batches_that_are_whole(tmp_path: Path) -> None:
    class HalfCold(Files):
        def preadv(self, descriptor, buffer, position, *, block):  # type: ignore[no-untyped-def]
            part = buffer if block else buffer[: len(buffer) // 2 + 1]
            return super().preadv(descriptor, part, position, block=True)

    log = open_log(tmp_path, files=HalfCold(16))
    fill(log, [b"%04d" % n for n in range(10)])
    found = list(split_batches(log.reader.read(0, 1 << 20, 10, min_one=True, block=False).buffer))
    assert [b.base_offset for b in found] == [0, 1, 2, 3, 4]


def test_an_append_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    with pytest.raises(KafkaError) as caught:
        log.appender.append([batch(b"x" * 200)], 0, NOW)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_a_follower_keeps_the_leaders_offsets(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader")
    fill(leader, [b"a", b"b", b"c"], epoch=4)
    data = leader.reader.read(0, 1 << 20, 3, min_one=True, block=True).buffer
    follower = open_log(tmp_path / "follower")
    follower.appender.append_as_follower(list(split_batches(data)))
    assert read_values(follower) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert follower.latest_epoch == 4
    with pytest.raises(KafkaError):
        follower.appender.append_as_follower(list(split_batches(data)))
    assert follower.log_end_offset == 3


def test_truncation_forgets_what_followed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=300, index_interval_bytes=0))
    for number in range(20):
        placed = batch(b"%d" % number, producer=(9, 0, number), timestamp=NOW + number)
        log.appender.append([placed], number // 5, NOW)
    log.high_watermark = 8
    log.truncate_to(7)
    assert log.log_end_offset == 7
    assert log.high_watermark == 7
    assert log.latest_epoch == 1
    assert [p.last_sequence for p in log.producers] == [6]
    assert read_values(log) == [(n, b"%d" % n) for n in range(7)]
    assert log.reader.max_timestamp_offset(block=True) == (NOW + 6, 6, 1)
    log.appender.append([batch(b"again", producer=(9, 0, 7))], 9, NOW)
    assert read_values(log, 6) == [(6, b"6"), (7, b"again")]
    log.close()
    assert read_values(open_log(tmp_path, clean=True), 6) == [(6, b"6"), (7, b"again")]


def test_a_log_can_begin_anew_after_a_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, [b"a", b"b"], epoch=3)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert log.latest_epoch == -1
    log.appender.append([batch(b"c")], 5, NOW)
    assert read_values(log) == [(100, b"c")]


def test_compressed_batches_come_back_as_they_were(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.appender.append([batch(b"x" * 500, b"y" * 500, codec=1)], 0, NOW)
    [found] = read(log, 1, limit=2)
    assert [record.value for record in decode_records(found)] == [b"x" * 500, b"y" * 500]
