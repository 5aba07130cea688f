"""Generated from DisklessCommitFileRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessCommitBatch(Struct):
    __slots__ = ("magic", "request_id", "topic_id", "partition_index", "byte_offset", "size", "base_offset", "last_offset", "batch_max_timestamp", "timestamp_type", "producer_id", "producer_epoch", "base_sequence", "last_sequence",)
    FIELDS = (
        Field("magic", "int8", Versions(0, LAST), 0),
        Field("request_id", "int32", Versions(0, LAST), 0),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("byte_offset", "int32", Versions(0, LAST), 0),
        Field("size", "int32", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("batch_max_timestamp", "int64", Versions(0, LAST), 0),
        Field("timestamp_type", "int8", Versions(0, LAST), 0),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("base_sequence", "int32", Versions(0, LAST), 0),
        Field("last_sequence", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        magic: int = 0,
        request_id: int = 0,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        byte_offset: int = 0,
        size: int = 0,
        base_offset: int = 0,
        last_offset: int = 0,
        batch_max_timestamp: int = 0,
        timestamp_type: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        base_sequence: int = 0,
        last_sequence: int = 0,
    ) -> None:
        self.magic = magic
        self.request_id = request_id
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.byte_offset = byte_offset
        self.size = size
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.batch_max_timestamp = batch_max_timestamp
        self.timestamp_type = timestamp_type
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.last_sequence = last_sequence


class DisklessCommitCoordinator(Struct):
    __slots__ = ("coordinator_id", "batch_count",)
    FIELDS = (
        Field("coordinator_id", "int32", Versions(0, LAST), 0),
        Field("batch_count", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        coordinator_id: int = 0,
        batch_count: int = 0,
    ) -> None:
        self.coordinator_id = coordinator_id
        self.batch_count = batch_count


class DisklessCommitFileRequest(Message):
    __slots__ = ("object_key", "object_format", "file_size", "owner_ids", "batches", "uploader_broker_id", "known_only", "coordinators", "timeout_ms",)
    TYPE = "request"
    API_KEY = 95
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("object_format", "int8", Versions(0, LAST), 0),
        Field("file_size", "int64", Versions(0, LAST), 0),
        Field("owner_ids", "int32", Versions(0, LAST), (), array=True),
        Field("batches", DisklessCommitBatch, Versions(0, LAST), (), array=True),
        Field("uploader_broker_id", "int32", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("known_only", "bool", Versions(0, LAST), False, tag=10002, tagged=Versions(0, LAST), ignorable=True),
        Field("coordinators", DisklessCommitCoordinator, Versions(0, LAST), (), array=True, tag=10001, tagged=Versions(0, LAST), ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        object_key: str = "",
        object_format: int = 0,
        file_size: int = 0,
        owner_ids: list[int] = UNSET,
        batches: list[DisklessCommitBatch] = UNSET,
        uploader_broker_id: int = -1,
        known_only: bool = False,
        coordinators: list[DisklessCommitCoordinator] = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.object_key = object_key
        self.object_format = object_format
        self.file_size = file_size
        self.owner_ids = [] if owner_ids is UNSET else owner_ids
        self.batches = [] if batches is UNSET else batches
        self.uploader_broker_id = uploader_broker_id
        self.known_only = known_only
        self.coordinators = [] if coordinators is UNSET else coordinators
        self.timeout_ms = timeout_ms

