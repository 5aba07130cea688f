"""Generated from Kafka's MetadataResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class MetadataResponseBroker(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(0, LAST), 0),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
        Field("rack", "string", Versions(1, LAST), None, nullable=Versions(1, LAST), ignorable=True),
    )


@dataclass(slots=True)
class MetadataResponsePartition(Struct):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(7, LAST), -1, ignorable=True),
        Field("replica_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("isr_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("offline_replicas", "int32", Versions(5, LAST), (), array=True, ignorable=True),
    )


@dataclass(slots=True)
class MetadataResponseTopic(Struct):
    error_code: int = 0
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(12, LAST)),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("is_internal", "bool", Versions(1, LAST), False, ignorable=True),
        Field("partitions", MetadataResponsePartition, Versions(0, LAST), (), array=True),
        Field("topic_authorized_operations", "int32", Versions(8, LAST), -2147483648),
    )


@dataclass(slots=True)
class MetadataResponse(Message):
    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0
    TYPE = "response"
    API_KEY = 3
    VERSIONS = Versions(0, 13)
    FLEXIBLE = Versions(9, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(3, LAST), 0, ignorable=True),
        Field("brokers", MetadataResponseBroker, Versions(0, LAST), (), array=True),
        Field("cluster_id", "string", Versions(2, LAST), None, nullable=Versions(2, LAST), ignorable=True),
        Field("controller_id", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("topics", MetadataResponseTopic, Versions(0, LAST), (), array=True),
        Field("cluster_authorized_operations", "int32", Versions(8, 10), -2147483648),
        Field("error_code", "int16", Versions(13, LAST), 0, ignorable=True),
    )

