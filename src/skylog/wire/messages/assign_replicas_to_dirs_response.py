"""Generated from Kafka's AssignReplicasToDirsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class TopicData(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DirectoryData(Struct):
    id: Uuid = ZERO_UUID
    topics: list[TopicData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[DirectoryData] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 73
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("directories", DirectoryData, Versions(0, LAST), (), array=True),
    )

