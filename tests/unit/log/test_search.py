"""Offsets by timestamp, exact to the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.limits import LOG_INLINE_DECODE_BYTES_MAX
from skylog.log.config import LogConfig
from skylog.log.files import WouldBlock
from skylog.log.log import Log
from skylog.wire.batch import Batch
from skylog.wire.records import encode_batch
from tests.unit.log.support import NOW, batch, open_log


@pytest.fixture(params=[0, 1])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Log:
    """More than two segments; timestamps are 10 apart, with swapped pairs."""
    found = open_log(tmp_path, LogConfig(segment_bytes=700, index_interval_bytes=100))
    for number in range(30):
        times = [NOW + 20 * number + 10, NOW + 20 * number]
        found.appender.append([batch(b"a", b"b", timestamps=times, codec=request.param)], 4, NOW)
    assert len(found.segments) > 2
    return found


def test_every_record_is_found_by_its_time(log: Log) -> None:
    for number in range(30):
        base = NOW + 20 * number
        # The first record in offset order whose time is late enough, not the earliest one.
        assert log.reader.offset_for_timestamp(base, block=True) == (base + 10, 2 * number, 4)
        assert log.reader.offset_for_timestamp(base + 1, block=True) == (base + 10, 2 * number, 4)
        if number < 29:
            following = (base + 30, 2 * number + 2, 4)
            assert log.reader.offset_for_timestamp(base + 11, block=True) == following
    assert log.reader.offset_for_timestamp(0, block=True) == (NOW + 10, 0, 4)
    assert log.reader.offset_for_timestamp(NOW + 20 * 29 + 11, block=True) is None


def test_records_below_the_log_start_are_no_answer(log: Log) -> None:
    log.high_watermark = log.log_end_offset
    log.trimming.delete_records_before(5)
    assert log.reader.offset_for_timestamp(0, block=True) == (NOW + 40, 5, 4)


def test_the_greatest_time_is_found_wherever_it_is(log: Log) -> None:
    assert log.reader.max_timestamp_offset(block=True) == (NOW + 20 * 29 + 10, 58, 4)
    late = [NOW + 9000, NOW + 9999, NOW + 9999]
    log.appender.append([batch(b"x", b"y", b"z", timestamps=late)], 6, NOW)
    for number in range(20):
        log.appender.append([batch(b"w", timestamp=NOW + number)], 6, NOW)
    assert log.reader.max_timestamp_offset(block=True) == (NOW + 9999, 61, 6)
    log.close()
    again = open_log(Path(log.directory), log.config, clean=True)
    assert again.reader.max_timestamp_offset(block=True) == (NOW + 9999, 61, 6)


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.reader.max_timestamp_offset(block=False) is None
    assert log.reader.offset_for_timestamp(0, block=False) is None


def test_all_records_of_append_time_have_the_batches_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = bytearray(encode_batch([(None, b"a"), (None, b"b")], timestamp=5))
    data[22] |= 0x08
    data[35:43] = (NOW).to_bytes(8, "big")
    log.appender.append([Batch(memoryview(data))], 0, NOW)
    assert log.reader.offset_for_timestamp(NOW - 100, block=False) == (NOW, 0, 0)
    assert log.reader.max_timestamp_offset(block=False) == (NOW, 0, 0)


@pytest.mark.parametrize(("size", "inline"), [(100, True), (LOG_INLINE_DECODE_BYTES_MAX, False)])
def test_a_large_batch_is_not_unpacked_on_the_loop(tmp_path: Path, size: int, inline: bool) -> None:
    log = open_log(tmp_path)
    log.appender.append([batch(b"v" * size)], 0, NOW)
    if inline:
        assert log.reader.offset_for_timestamp(NOW, block=False) == (NOW, 0, 0)
    else:
        with pytest.raises(WouldBlock):
            log.reader.offset_for_timestamp(NOW, block=False)
    assert log.reader.offset_for_timestamp(NOW, block=True) == (NOW, 0, 0)
