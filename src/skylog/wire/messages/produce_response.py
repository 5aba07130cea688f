"""Generated from Kafka's ProduceResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class BatchIndexAndErrorMessage(Struct):
    batch_index: int = 0
    batch_index_error_message: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("batch_index", "int32", Versions(8, LAST), 0),
        Field("batch_index_error_message", "string", Versions(8, LAST), None, nullable=Versions(8, LAST)),
    )


@dataclass(slots=True)
class LeaderIdAndEpoch(Struct):
    leader_id: int = -1
    leader_epoch: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", Versions(10, LAST), -1),
        Field("leader_epoch", "int32", Versions(10, LAST), -1),
    )


@dataclass(slots=True)
class PartitionProduceResponse(Struct):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = field(default_factory=list)
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_time_ms", "int64", Versions(2, LAST), -1, ignorable=True),
        Field("log_start_offset", "int64", Versions(5, LAST), -1, ignorable=True),
        Field("record_errors", BatchIndexAndErrorMessage, Versions(8, LAST), (), array=True, ignorable=True),
        Field("error_message", "string", Versions(8, LAST), None, nullable=Versions(8, LAST), ignorable=True),
        Field("current_leader", LeaderIdAndEpoch, Versions(10, LAST), ..., tag=0, tagged=Versions(10, LAST)),
    )


@dataclass(slots=True)
class TopicProduceResponse(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partition_responses", PartitionProduceResponse, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(10, LAST), 0),
        Field("host", "string", Versions(10, LAST), ""),
        Field("port", "int32", Versions(10, LAST), 0),
        Field("rack", "string", Versions(10, LAST), None, nullable=Versions(10, LAST)),
    )


@dataclass(slots=True)
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = field(default_factory=list)
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 0
    VERSIONS = Versions(3, 13)
    FLEXIBLE = Versions(9, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("responses", TopicProduceResponse, Versions(0, LAST), (), array=True),
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("node_endpoints", NodeEndpoint, Versions(10, LAST), (), array=True, tag=0, tagged=Versions(10, LAST)),
    )

