"""Generated from AlterPartitionReassignmentsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ReassignablePartition(Struct):
    __slots__ = ("partition_index", "replicas",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", ReassignablePartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics",)
    TYPE = "request"
    API_KEY = 45
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("allow_replication_factor_change", "bool", Versions(1, LAST), True),
        Field("topics", ReassignableTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = UNSET,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is UNSET else topics

