"""Generated from StartSegmentsResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class StartedSegment(Struct):
    __slots__ = ("segment_id", "start_offset", "end_offset", "size_in_bytes", "max_timestamp_ms", "event_timestamp_ms", "lease_ms",)
    FIELDS = (
        Field("segment_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("size_in_bytes", "int32", Versions(0, LAST), 0),
        Field("max_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("event_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("lease_ms", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        segment_id: Uuid = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        size_in_bytes: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        lease_ms: int = 0,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.size_in_bytes = size_in_bytes
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.lease_ms = lease_ms


class StartedPartition(Struct):
    __slots__ = ("topic_id", "partition_index", "error_code", "error_message", "leader_epoch", "next_offset", "high_watermark", "producer_snapshot", "segments",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("next_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("producer_snapshot", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("segments", StartedSegment, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        leader_epoch: int = -1,
        next_offset: int = -1,
        high_watermark: int = -1,
        producer_snapshot: bytes | None = None,
        segments: list[StartedSegment] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_epoch = leader_epoch
        self.next_offset = next_offset
        self.high_watermark = high_watermark
        self.producer_snapshot = producer_snapshot
        self.segments = [] if segments is UNSET else segments


class StartSegmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "storage_url", "chunk_size", "broker_id", "partitions",)
    TYPE = "response"
    API_KEY = 510
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("storage_url", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("chunk_size", "int32", Versions(0, LAST), 0),
        Field("broker_id", "int32", Versions(0, LAST), -1),
        Field("partitions", StartedPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        storage_url: str | None = None,
        chunk_size: int = 0,
        broker_id: int = -1,
        partitions: list[StartedPartition] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.storage_url = storage_url
        self.chunk_size = chunk_size
        self.broker_id = broker_id
        self.partitions = [] if partitions is UNSET else partitions

