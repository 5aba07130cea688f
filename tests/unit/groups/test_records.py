"""The bytes of ``__consumer_offsets``."""

from __future__ import annotations

import pytest

from skylog.groups.records import (
    GroupRecord,
    GroupRecordCodec,
    OffsetRecord,
    group_tombstone,
    new_group_record,
    offset_tombstone,
)
from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.wire.messages.offset_commit_key import OffsetCommitKey
from skylog.wire.messages.offset_commit_value import OffsetCommitValue

CODEC = GroupRecordCodec()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            OffsetCommitValue(5, 7, "m", 1, topic_id=Uuid(range(16))),
            (
                "0004 0000000000000005 00000007 02 6d 0000000000000001"
                "01 00 10 000102030405060708090a0b0c0d0e0f"
            ),
        ),
        (OffsetCommitValue(5, 7, "", 1), "0004 0000000000000005 00000007 01 0000000000000001 00"),
        (
            OffsetCommitValue(5, -1, "m", 1, expire_timestamp=2),
            "0001 0000000000000005 0001 6d 0000000000000001 0000000000000002",
        ),
    ],
)
def test_an_offset_is_written_as_kafka_writes_it(value: OffsetCommitValue, expected: str) -> None:
    record = OffsetRecord(OffsetCommitKey("g", "t", 3), value)
    key, encoded = CODEC.encode(record)
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert encoded == bytes.fromhex(expected)
    assert CODEC.decode(key, encoded) == record


def test_a_new_group_is_written_as_kafka_writes_it() -> None:
    record = new_group_record("g", 9)
    key, value = CODEC.encode(record)
    assert key == bytes.fromhex("0002 0001 67")
    assert value == bytes.fromhex("0003 0000 00000000 ffff ffff 0000000000000009 00000000")
    assert CODEC.decode(key, value) == record


@pytest.mark.parametrize("record", [group_tombstone("g"), offset_tombstone("g", "t", 3)])
def test_tombstones(record: GroupRecord | OffsetRecord) -> None:
    key, value = CODEC.encode(record)
    assert value is None
    assert CODEC.decode(key, None) == record


def test_the_oldest_offset_keys_are_read() -> None:
    key = bytes.fromhex("0000 0001 67 0001 74 00000003")
    record = CODEC.decode(key, bytes.fromhex("0000 0000000000000005 0000 0000000000000001"))
    assert isinstance(record, OffsetRecord)
    assert record.value == OffsetCommitValue(5, -1, "", 1)


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\x00\x0b\x00\x01g", b"\x7f\xff", b"\xff\xff"])
def test_other_kinds_of_records_are_passed_over(key: bytes | None) -> None:
    assert CODEC.decode(key, b"whatever") is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\x00\x04\x00", b"\x7f\xff" + bytes(40)])
def test_an_invalid_value_is_an_error(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        CODEC.decode(bytes.fromhex("0001 0001 67 0001 74 00000003"), value)
