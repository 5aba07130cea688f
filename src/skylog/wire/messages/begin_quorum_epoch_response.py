"""Generated from Kafka's BeginQuorumEpochResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
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
class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(1, LAST), 0),
        Field("host", "string", Versions(1, LAST), ""),
        Field("port", "uint16", Versions(1, LAST), 0),
    )


@dataclass(slots=True)
class BeginQuorumEpochResponse(Message):
    error_code: int = 0
    topics: list[TopicData] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 53
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(1, LAST), (), array=True, tag=0, tagged=Versions(1, LAST)),
    )

