"""Records of logs besides client data: metadata, coordinator and control records."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.wire.control_records import (
    ControlType,
    control_record,
    control_type,
    parse_control,
    transaction_marker,
)
from skylog.wire.coordinator_records import (
    decode_group_record,
    decode_transaction_record,
    encode_key,
    encode_value,
)
from skylog.wire.messages.end_txn_marker import EndTxnMarker
from skylog.wire.messages.heartbeat_request import HeartbeatRequest
from skylog.wire.messages.k_raft_version_record import KRaftVersionRecord
from skylog.wire.messages.leader_change_message import LeaderChangeMessage, Voter
from skylog.wire.messages.no_op_record import NoOpRecord
from skylog.wire.messages.offset_commit_key import OffsetCommitKey
from skylog.wire.messages.offset_commit_value import OffsetCommitValue
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.messages.transaction_log_key import TransactionLogKey
from skylog.wire.metadata_records import decode_metadata, encode_metadata


def test_a_metadata_record_says_frame_type_and_version() -> None:
    record = TopicRecord(name="t", topic_id=Uuid(bytes(range(16))))
    data = encode_metadata(record)
    assert data == b"\x01\x02\x00" + b"\x02t" + bytes(range(16)) + b"\0"
    assert decode_metadata(memoryview(data)) == record
    assert encode_metadata(NoOpRecord()) == b"\x01\x14\x00\x00"
    assert decode_metadata(None) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x01\x02",
        b"\x00\x14\x00\x00",  # frame version of Kafka 2.8
        b"\x02\x14\x00\x00",
        b"\x01\x63\x00\x00",  # unknown type
        b"\x01\x14\x01\x00",  # unknown version
        b"\x01\x14\x00\x00!",  # something after it
        b"\x01\xff\xff\xff\xff\x0f\x00\x00",
    ],
)
def test_invalid_metadata_records(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_metadata(data)


def test_only_metadata_records_go_into_the_metadata_log() -> None:
    with pytest.raises(ProtocolError):
        encode_metadata(HeartbeatRequest())


def test_coordinator_records() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=4)
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=6)
    written = encode_key(key), encode_value(value, 3)
    assert written[0] == b"\0\x01\0\x01g\0\x01t\0\0\0\x04"
    assert written[1][:2] == b"\0\x03"
    assert decode_group_record(*written) == (key, value)
    assert decode_group_record(written[0], None) == (key, None)


def test_both_coordinators_have_a_type_0() -> None:
    key = encode_key(TransactionLogKey(transactional_id="tx"))
    assert decode_transaction_record(key, None) == (TransactionLogKey("tx"), None)
    assert decode_transaction_record(b"\0\x01" + key[2:], None) is None
    assert decode_group_record(b"\0\x63", b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\0", None),
        (b"\0\x01\0\x01g\0\x01t\0\0\0\x04", b""),
        (b"\0\x01\0\x01g\0\x01t\0\0\0\x04", b"\0\x63"),
        (b"\0\x01\0\x01g\0\x01t\0\0\0", None),
    ],
)
def test_broken_coordinator_records(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_group_record(key, value)


def test_keys_and_values_are_not_mixed_up() -> None:
    with pytest.raises(ProtocolError):
        encode_key(OffsetCommitValue())
    with pytest.raises(ProtocolError):
        encode_value(OffsetCommitKey(), 0)


def test_transaction_markers() -> None:
    assert transaction_marker(True, 7) == (b"\0\0\0\x01", b"\0\0\0\0\0\x07")
    assert transaction_marker(False, 7) == (b"\0\0\0\0", b"\0\0\0\0\0\x07")
    assert parse_control(*transaction_marker(True, 7)) == (ControlType.COMMIT, EndTxnMarker(7))
    # A marker of a later version is read like ours, whatever is added to it.
    assert parse_control(b"\0\0\0\0", b"\0\x05\0\0\0\x07more") == (0, EndTxnMarker(7))


@pytest.mark.parametrize("version", [0, 1])
def test_leader_changes(version: int) -> None:
    voter = Voter(1, Uuid(b"d" * 16)) if version else Voter(1)
    message = LeaderChangeMessage(version, 1, [voter], [voter])
    key, value = control_record(ControlType.LEADER_CHANGE, message, version)
    assert key == b"\0\0\0\x02"
    assert parse_control(key, value) == (ControlType.LEADER_CHANGE, message)


def test_control_records_of_wrong_types() -> None:
    with pytest.raises(ProtocolError):
        control_record(ControlType.COMMIT, KRaftVersionRecord())
    with pytest.raises(ProtocolError):
        control_record(99, KRaftVersionRecord())
    assert parse_control(b"\0\0\0\x63", None) == (99, None)
    assert control_type(b"\0\x01\0\x05more") == 5
    for key, value in (
        (b"\0\0\0", b""),
        (b"\xff\xff\0\0", b""),
        (b"\0\0\0\x05", b"\0"),
        (None, b""),
    ):
        with pytest.raises(ProtocolError):
            parse_control(key, value)
