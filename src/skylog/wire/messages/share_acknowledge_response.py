"""Generated from Kafka's ShareAcknowledgeResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class LeaderIdAndEpoch(Struct):
    leader_id: int = 0
    leader_epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("current_leader", LeaderIdAndEpoch, Versions(0, LAST), ...),
    )


@dataclass(slots=True)
class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(0, LAST), 0),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
        Field("rack", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 79
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("acquisition_lock_timeout_ms", "int32", Versions(2, LAST), 0, ignorable=True),
        Field("responses", ShareAcknowledgeTopicResponse, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(0, LAST), (), array=True),
    )

