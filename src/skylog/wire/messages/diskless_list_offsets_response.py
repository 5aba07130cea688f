"""Generated from DisklessListOffsetsResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessListedBatch(Struct):
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


class DisklessListOffsetsPartitionResult(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "timestamp", "offset", "batches",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), ignorable=True),
        Field("timestamp", "int64", Versions(0, LAST), -1),
        Field("offset", "int64", Versions(0, LAST), -1),
        Field("batches", DisklessListedBatch, Versions(0, LAST), (), array=True, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        timestamp: int = -1,
        offset: int = -1,
        batches: list[DisklessListedBatch] = UNSET,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.timestamp = timestamp
        self.offset = offset
        self.batches = [] if batches is UNSET else batches


class DisklessListOffsetsTopicResult(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", DisklessListOffsetsPartitionResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[DisklessListOffsetsPartitionResult] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class DisklessListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)
    TYPE = "response"
    API_KEY = 97
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("topics", DisklessListOffsetsTopicResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DisklessListOffsetsTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics

