"""Records of ``__remote_log_metadata`` against bytes that Kafka 4.3.1's serializer wrote."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.wire.messages import remote_log_segment_metadata_record as segment
from skylog.wire.messages import remote_log_segment_metadata_update_record as update
from skylog.wire.messages import remote_partition_delete_metadata_record as deletion
from skylog.wire.metadata_records import decode_remote_log, encode_remote_log
from skylog.wire.schema import Message

TOPIC = "topic1", Uuid.parse("lZ6vvmajTWKDBUTV6SQAtQ"), 42
SEGMENT = Uuid.parse("adh9f8BMS4anaUnD8KWfWg")
PARTITION = "07746f70696331959eafbe66a34d62830544d5e92400b50000002a00"
HEAD = f"010000{PARTITION}69d87d7fc04c4b86a76949c3f0a59f5a00"
STARTED = HEAD + (
    "000000000000006400000000000003e800000002000000003b9aca000000000077359400"
    "030000000000000000000000640000000002000000000000012c0000018894000000"
)
FINISHED = f"010100{PARTITION}69d87d7fc04c4b86a76949c3f0a59f5a0000000002000000007735940100" + "0100"
MARKED = f"010200{PARTITION}0000000200000000773594020000"


def started(**more: object) -> Message:
    return segment.RemoteLogSegmentMetadataRecord(
        segment.RemoteLogSegmentIdEntry(segment.TopicIdPartitionEntry(*TOPIC), SEGMENT),
        start_offset=100,
        end_offset=1000,
        broker_id=2,
        max_timestamp_ms=1_000_000_000,
        event_timestamp_ms=2_000_000_000,
        segment_leader_epochs=[
            segment.SegmentLeaderEpochEntry(0, 100),
            segment.SegmentLeaderEpochEntry(2, 300),
        ],
        segment_size_in_bytes=100_500,
        **more,  # type: ignore[arg-type]
    )


def finished(**more: int) -> Message:
    return update.RemoteLogSegmentMetadataUpdateRecord(
        update.RemoteLogSegmentIdEntry(update.TopicIdPartitionEntry(*TOPIC), SEGMENT),
        broker_id=2,
        event_timestamp_ms=2_000_000_001,
        remote_log_segment_state=1,
        **more,
    )


def marked() -> Message:
    return deletion.RemotePartitionDeleteMetadataRecord(
        deletion.TopicIdPartitionEntry(*TOPIC), broker_id=2, event_timestamp_ms=2_000_000_002
    )


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (started(), STARTED),
        (started(txn_index_empty=True), STARTED[:-2] + "01000101"),
        (finished(), FINISHED),
        (marked(), MARKED),
    ],
)
def test_kafkas_bytes(record: Message, written: str) -> None:
    assert encode_remote_log(record).hex() == written
    assert encode_remote_log(decode_remote_log(bytes.fromhex(written))).hex() == written  # type: ignore[arg-type]


def test_our_tags_come_behind_what_kafka_reads() -> None:
    plain = encode_remote_log(started())
    tagged = encode_remote_log(started(copier_epoch=7, log_start_offset=50))
    assert tagged[: len(plain) - 1] == plain[:-1]
    read = decode_remote_log(tagged)
    assert (read.copier_epoch, read.log_start_offset) == (7, 50)  # type: ignore[union-attr]
    assert decode_remote_log(plain).copier_epoch == -1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "damaged", [b"\x01\x09\x00", b"\x02\x00\x00", bytes.fromhex(STARTED)[:-9], b"", b"\x01"]
)
def test_what_cannot_be_read(damaged: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_remote_log(damaged)
    with pytest.raises(ProtocolError):
        decode_remote_log(bytes.fromhex(FINISHED) + b"\x00")
