"""Generated from Kafka's DescribeTopicPartitionsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), -1, ignorable=True),
        Field("replica_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("isr_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("eligible_leader_replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("last_known_elr", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("offline_replicas", "int32", Versions(0, LAST), (), array=True, ignorable=True),
    )


@dataclass(slots=True)
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = 0
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID, ignorable=True),
        Field("is_internal", "bool", Versions(0, LAST), False, ignorable=True),
        Field("partitions", DescribeTopicPartitionsResponsePartition, Versions(0, LAST), (), array=True),
        Field("topic_authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )


@dataclass(slots=True)
class Cursor(Struct):
    topic_name: str = ""
    partition_index: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: Cursor | None = None
    TYPE = "response"
    API_KEY = 75
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("topics", DescribeTopicPartitionsResponseTopic, Versions(0, LAST), (), array=True),
        Field("next_cursor", Cursor, Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

