"""Generated from DisklessDeleteRecordsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessDeleteRecordsPartition(Struct):
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


class DisklessDeleteRecordsTopic(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", DisklessDeleteRecordsPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[DisklessDeleteRecordsPartition] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class DisklessDeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "wal_only",)
    TYPE = "request"
    API_KEY = 96
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", DisklessDeleteRecordsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("wal_only", "bool", Versions(0, LAST), False, tag=10000, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        topics: list[DisklessDeleteRecordsTopic] = UNSET,
        timeout_ms: int = 60000,
        wal_only: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.wal_only = wal_only

