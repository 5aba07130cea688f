"""Generated from DisklessListOffsetsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessListOffsetsPartition(Struct):
    __slots__ = ("partition_index", "timestamp",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("timestamp", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.timestamp = timestamp


class DisklessListOffsetsTopic(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", DisklessListOffsetsPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[DisklessListOffsetsPartition] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class DisklessListOffsetsRequest(Message):
    __slots__ = ("topics", "from_offset", "timeout_ms",)
    TYPE = "request"
    API_KEY = 97
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", DisklessListOffsetsTopic, Versions(0, LAST), (), array=True),
        Field("from_offset", "int64", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        topics: list[DisklessListOffsetsTopic] = UNSET,
        from_offset: int = 0,
        timeout_ms: int = 60000,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.from_offset = from_offset
        self.timeout_ms = timeout_ms

