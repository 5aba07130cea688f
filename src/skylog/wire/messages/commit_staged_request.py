"""Generated from CommitStagedRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class StagedBatch(Struct):
    __slots__ = ("topic_name", "topic_id", "partition_index", "byte_offset", "byte_size",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("byte_offset", "int32", Versions(0, LAST), 0),
        Field("byte_size", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        byte_offset: int = 0,
        byte_size: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.byte_offset = byte_offset
        self.byte_size = byte_size


class StagedObject(Struct):
    __slots__ = ("object_key", "size", "batches",)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("size", "int64", Versions(0, LAST), 0),
        Field("batches", StagedBatch, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        object_key: str = "",
        size: int = 0,
        batches: list[StagedBatch] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.size = size
        self.batches = [] if batches is UNSET else batches


class CommitStagedRequest(Message):
    __slots__ = ("writer_id", "epoch", "objects", "timeout_ms",)
    TYPE = "request"
    API_KEY = 502
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("writer_id", "string", Versions(0, LAST), ""),
        Field("epoch", "int64", Versions(0, LAST), 0),
        Field("objects", StagedObject, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        writer_id: str = "",
        epoch: int = 0,
        objects: list[StagedObject] = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.writer_id = writer_id
        self.epoch = epoch
        self.objects = [] if objects is UNSET else objects
        self.timeout_ms = timeout_ms

