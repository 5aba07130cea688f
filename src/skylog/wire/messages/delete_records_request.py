"""Generated from DeleteRecordsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DeleteRecordsPartition(Struct):
    __slots__ = ("partition_index", "offset",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", DeleteRecordsPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms",)
    TYPE = "request"
    API_KEY = 21
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", DeleteRecordsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] = UNSET,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms

