"""Generated from Kafka's DescribeQuorumResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ReplicaState(Struct):
    replica_id: int = 0
    replica_directory_id: Uuid = ZERO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(2, LAST), ZERO_UUID),
        Field("log_end_offset", "int64", Versions(0, LAST), 0),
        Field("last_fetch_timestamp", "int64", Versions(1, LAST), -1, ignorable=True),
        Field("last_caught_up_timestamp", "int64", Versions(1, LAST), -1, ignorable=True),
    )


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = field(default_factory=list)
    observers: list[ReplicaState] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(2, LAST), "", nullable=Versions(2, LAST), ignorable=True),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("high_watermark", "int64", Versions(0, LAST), 0),
        Field("current_voters", ReplicaState, Versions(0, LAST), (), array=True),
        Field("observers", ReplicaState, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class TopicData(Struct):
    topic_name: str = ""
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(2, LAST), ""),
        Field("host", "string", Versions(2, LAST), ""),
        Field("port", "uint16", Versions(2, LAST), 0),
    )


@dataclass(slots=True)
class Node(Struct):
    node_id: int = 0
    listeners: list[Listener] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(2, LAST), 0),
        Field("listeners", Listener, Versions(2, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeQuorumResponse(Message):
    error_code: int = 0
    error_message: str | None = ""
    topics: list[TopicData] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 55
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(2, LAST), "", nullable=Versions(2, LAST), ignorable=True),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("nodes", Node, Versions(2, LAST), (), array=True),
    )

