"""Generated from DisklessFindBatchesResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessBatchCoordinate(Struct):
    __slots__ = ("batch_id", "object_key", "magic", "byte_offset", "byte_size", "base_offset", "last_offset", "log_append_timestamp", "batch_max_timestamp", "timestamp_type",)
    FIELDS = (
        Field("batch_id", "int64", Versions(0, LAST), 0),
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("magic", "int8", Versions(0, LAST), 0),
        Field("byte_offset", "int64", Versions(0, LAST), 0),
        Field("byte_size", "int64", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_timestamp", "int64", Versions(0, LAST), 0),
        Field("batch_max_timestamp", "int64", Versions(0, LAST), 0),
        Field("timestamp_type", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        batch_id: int = 0,
        object_key: str = "",
        magic: int = 0,
        byte_offset: int = 0,
        byte_size: int = 0,
        base_offset: int = 0,
        last_offset: int = 0,
        log_append_timestamp: int = 0,
        batch_max_timestamp: int = 0,
        timestamp_type: int = 0,
    ) -> None:
        self.batch_id = batch_id
        self.object_key = object_key
        self.magic = magic
        self.byte_offset = byte_offset
        self.byte_size = byte_size
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_timestamp = log_append_timestamp
        self.batch_max_timestamp = batch_max_timestamp
        self.timestamp_type = timestamp_type


class DisklessFindBatchesPartitionResult(Struct):
    __slots__ = ("partition_index", "error_code", "log_start_offset", "high_watermark", "batches", "log_bytes", "wal_start_offset",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("log_start_offset", "int64", Versions(0, LAST), -1),
        Field("high_watermark", "int64", Versions(0, LAST), -1),
        Field("batches", DisklessBatchCoordinate, Versions(0, LAST), (), array=True),
        Field("log_bytes", "int64", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("wal_start_offset", "int64", Versions(0, LAST), -1, tag=10001, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        log_start_offset: int = -1,
        high_watermark: int = -1,
        batches: list[DisklessBatchCoordinate] = UNSET,
        log_bytes: int = -1,
        wal_start_offset: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.batches = [] if batches is UNSET else batches
        self.log_bytes = log_bytes
        self.wal_start_offset = wal_start_offset


class DisklessFindBatchesTopicResult(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", DisklessFindBatchesPartitionResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[DisklessFindBatchesPartitionResult] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class DisklessFindBatchesResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "until",)
    TYPE = "response"
    API_KEY = 98
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("topics", DisklessFindBatchesTopicResult, Versions(0, LAST), (), array=True),
        Field("error_code", "int16", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("until", "int64", Versions(0, LAST), -1, tag=10001, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DisklessFindBatchesTopicResult] = UNSET,
        error_code: int = 0,
        until: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.error_code = error_code
        self.until = until

