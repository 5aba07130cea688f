"""Generated from Kafka's OffsetFetchResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class OffsetFetchResponsePartition(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, 7), 0),
        Field("committed_offset", "int64", Versions(0, 7), 0),
        Field("committed_leader_epoch", "int32", Versions(5, 7), -1, ignorable=True),
        Field("metadata", "string", Versions(0, 7), "", nullable=Versions(0, 7)),
        Field("error_code", "int16", Versions(0, 7), 0),
    )


@dataclass(slots=True)
class OffsetFetchResponseTopic(Struct):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, 7), ""),
        Field("partitions", OffsetFetchResponsePartition, Versions(0, 7), (), array=True),
    )


@dataclass(slots=True)
class OffsetFetchResponsePartitions(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(8, LAST), 0),
        Field("committed_offset", "int64", Versions(8, LAST), 0),
        Field("committed_leader_epoch", "int32", Versions(8, LAST), -1, ignorable=True),
        Field("metadata", "string", Versions(8, LAST), "", nullable=Versions(8, LAST)),
        Field("error_code", "int16", Versions(8, LAST), 0),
    )


@dataclass(slots=True)
class OffsetFetchResponseTopics(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(8, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", OffsetFetchResponsePartitions, Versions(8, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetFetchResponseGroup(Struct):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(8, LAST), ""),
        Field("topics", OffsetFetchResponseTopics, Versions(8, LAST), (), array=True),
        Field("error_code", "int16", Versions(8, LAST), 0),
    )


@dataclass(slots=True)
class OffsetFetchResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = field(default_factory=list)
    error_code: int = 0
    groups: list[OffsetFetchResponseGroup] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 9
    VERSIONS = Versions(1, 10)
    FLEXIBLE = Versions(6, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(3, LAST), 0, ignorable=True),
        Field("topics", OffsetFetchResponseTopic, Versions(0, 7), (), array=True),
        Field("error_code", "int16", Versions(2, 7), 0, ignorable=True),
        Field("groups", OffsetFetchResponseGroup, Versions(8, LAST), (), array=True),
    )

