"""Batches match their coordinates, or an error names the position."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skylog.bulk.verify import batches_from_broker, batches_in_object
from skylog.client.bulk import BatchLocation, Split
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.batch import Batch
from skylog.wire.records import encode_batch

SPLIT = Split("t", ZERO_UUID, 2, 0, 100, 0, True)


def three(base: int = 0) -> bytes:
    return encode_batch([(None, b"%d" % at) for at in range(3)], timestamp=5, base_offset=base)


def location(data: bytes, base: int = 10, last: int = 12) -> BatchLocation:
    return BatchLocation("wal/k", 7, len(data), base, last, -1, 5, 0)


def test_offsets_and_time_come_from_the_coordinates() -> None:
    data = three()
    (found,) = batches_in_object(SPLIT, location(data), data)
    assert (found.base_offset, found.last_offset, found.log_append_timestamp) == (10, 12, -1)
    assert (bytes(found.data), found.source) == (data, "wal/k")
    stamped = replace(location(data), log_append_timestamp=99, timestamp_type=1)
    assert batches_in_object(SPLIT, stamped, data)[0].log_append_timestamp == 99


def test_adjacent_batches_may_share_a_coordinate() -> None:
    data = three() + three()
    found = batches_in_object(SPLIT, location(data, 10, 15), data)
    assert [(one.base_offset, one.last_offset) for one in found] == [(10, 12), (13, 15)]


@pytest.mark.parametrize(
    ("data", "last", "why"),
    [
        (three()[:-1] + b"\xff", 12, "a wrong checksum"),
        (three() + b"x", 12, "whole batches in"),
        (three() + three()[:-1], 15, "whole batches in"),
        (three(), 13, "offsets up to 12, not 13"),
        (three(), 11, "offsets up to 12, not 11"),
        (three()[:8] + b"\0\0\0\1" + three()[12:], 12, "a batch claims 13 bytes"),
        (three()[:16] + b"\1" + three()[17:], 12, "message format 1"),
    ],
)
def test_bytes_that_are_something_else(data: bytes, last: int, why: str) -> None:
    with pytest.raises(KafkaError) as caught:
        batches_in_object(SPLIT, location(data, 10, last), data)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert "topic t partition 2 offset 10 in wal/k at 7: " in str(caught.value)
    assert why in str(caught.value)


def test_fewer_bytes_than_asked_for() -> None:
    data = three()
    with pytest.raises(KafkaError, match=f"{len(data) - 1} bytes instead of {len(data)}"):
        batches_in_object(SPLIT, location(data), data[:-1])


def test_a_fetch_answer_begins_before_and_ends_in_the_middle() -> None:
    data = three(0) + three(3) + three(6)[:-1]
    found = list(batches_from_broker(SPLIT, data, 4))
    assert [(one.base_offset, one.last_offset) for one in found] == [(3, 5)]
    with pytest.raises(KafkaError, match="topic t partition 2 offset 0, from the broker: a wrong"):
        list(batches_from_broker(SPLIT, data[:70] + b"\xff" + data[71:], 0))


def test_a_broker_tells_log_append_time_in_the_batch() -> None:
    data = bytearray(three())
    data[22] |= 0x08
    data[17:21] = _crc(data)
    (found,) = batches_from_broker(SPLIT, bytes(data), 0)
    assert found.log_append_timestamp == 5


def _crc(data: bytearray) -> bytes:
    from crc32c import crc32c

    assert Batch(data).is_log_append_time
    return crc32c(bytes(data[21:])).to_bytes(4, "big")
