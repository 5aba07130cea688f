"""Generated from ListOffsetsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ListOffsetsPartition(Struct):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(4, LAST), -1, ignorable=True),
        Field("timestamp", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", ListOffsetsPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms",)
    TYPE = "request"
    API_KEY = 2
    VERSIONS = Versions(1, 11)
    FLEXIBLE = Versions(6, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("replica_id", "int32", Versions(0, LAST), 0),
        Field("isolation_level", "int8", Versions(2, LAST), 0),
        Field("topics", ListOffsetsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(10, LAST), 0, ignorable=True),
    )

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = UNSET,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms

