"""Generated from FileCommittedRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CommittedBatch(Struct):
    __slots__ = ("magic", "byte_offset", "byte_size", "assigned_base_offset", "assigned_last_offset", "log_append_timestamp", "batch_max_timestamp", "timestamp_type", "producer_id", "producer_epoch", "base_sequence", "last_sequence",)
    FIELDS = (
        Field("magic", "int8", Versions(0, LAST), 0),
        Field("byte_offset", "int32", Versions(0, LAST), 0),
        Field("byte_size", "int32", Versions(0, LAST), 0),
        Field("assigned_base_offset", "int64", Versions(0, LAST), 0),
        Field("assigned_last_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_timestamp", "int64", Versions(0, LAST), 0),
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
        byte_offset: int = 0,
        byte_size: int = 0,
        assigned_base_offset: int = 0,
        assigned_last_offset: int = 0,
        log_append_timestamp: int = 0,
        batch_max_timestamp: int = 0,
        timestamp_type: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        base_sequence: int = 0,
        last_sequence: int = 0,
    ) -> None:
        self.magic = magic
        self.byte_offset = byte_offset
        self.byte_size = byte_size
        self.assigned_base_offset = assigned_base_offset
        self.assigned_last_offset = assigned_last_offset
        self.log_append_timestamp = log_append_timestamp
        self.batch_max_timestamp = batch_max_timestamp
        self.timestamp_type = timestamp_type
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.last_sequence = last_sequence


class CommittedPartition(Struct):
    __slots__ = ("partition_index", "batches",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("batches", CommittedBatch, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        batches: list[CommittedBatch] = UNSET,
    ) -> None:
        self.partition_index = partition_index
        self.batches = [] if batches is UNSET else batches


class CommittedTopic(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", CommittedPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[CommittedPartition] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class CommittedAnswer(Struct):
    __slots__ = ("byte_offset", "error_code", "base_offset", "log_append_time",)
    FIELDS = (
        Field("byte_offset", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_time", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        byte_offset: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time: int = 0,
    ) -> None:
        self.byte_offset = byte_offset
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time = log_append_time


class FileCommittedRecord(Message):
    __slots__ = ("object_key", "object_format", "file_size", "uploader_broker_id", "owner_ids", "topics", "log_offset", "committed_ms", "deletable_since_ms", "received", "answers",)
    TYPE = "diskless-record"
    API_KEY = 102
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("object_format", "int8", Versions(0, LAST), 0),
        Field("file_size", "int64", Versions(0, LAST), 0),
        Field("uploader_broker_id", "int32", Versions(0, LAST), 0),
        Field("owner_ids", "int32", Versions(0, LAST), (), array=True),
        Field("topics", CommittedTopic, Versions(0, LAST), (), array=True),
        Field("log_offset", "int64", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("committed_ms", "int64", Versions(0, LAST), -1, tag=10001, tagged=Versions(0, LAST), ignorable=True),
        Field("deletable_since_ms", "int64", Versions(0, LAST), -1, tag=10002, tagged=Versions(0, LAST), ignorable=True),
        Field("received", "bool", Versions(0, LAST), False, tag=10003, tagged=Versions(0, LAST), ignorable=True),
        Field("answers", CommittedAnswer, Versions(0, LAST), (), array=True, tag=10004, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        object_key: str = "",
        object_format: int = 0,
        file_size: int = 0,
        uploader_broker_id: int = 0,
        owner_ids: list[int] = UNSET,
        topics: list[CommittedTopic] = UNSET,
        log_offset: int = -1,
        committed_ms: int = -1,
        deletable_since_ms: int = -1,
        received: bool = False,
        answers: list[CommittedAnswer] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.object_format = object_format
        self.file_size = file_size
        self.uploader_broker_id = uploader_broker_id
        self.owner_ids = [] if owner_ids is UNSET else owner_ids
        self.topics = [] if topics is UNSET else topics
        self.log_offset = log_offset
        self.committed_ms = committed_ms
        self.deletable_since_ms = deletable_since_ms
        self.received = received
        self.answers = [] if answers is UNSET else answers

