"""Generated from Kafka's EndQuorumEpochRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ReplicaInfo(Struct):
    candidate_id: int = 0
    candidate_directory_id: Uuid = ZERO_UUID
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("candidate_id", "int32", Versions(1, LAST), 0),
        Field("candidate_directory_id", "uuid", Versions(1, LAST), ZERO_UUID),
    )


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    preferred_successors: list[int] = field(default_factory=list)
    preferred_candidates: list[ReplicaInfo] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("preferred_successors", "int32", Versions(0, 0), (), array=True, ignorable=True),
        Field("preferred_candidates", ReplicaInfo, Versions(1, LAST), (), array=True, ignorable=True),
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
class LeaderEndpoint(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(1, LAST), ""),
        Field("host", "string", Versions(1, LAST), ""),
        Field("port", "uint16", Versions(1, LAST), 0),
    )


@dataclass(slots=True)
class EndQuorumEpochRequest(Message):
    cluster_id: str | None = None
    topics: list[TopicData] = field(default_factory=list)
    leader_endpoints: list[LeaderEndpoint] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 54
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("leader_endpoints", LeaderEndpoint, Versions(1, LAST), (), array=True, ignorable=True),
    )

