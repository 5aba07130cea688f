"""Generated from Kafka's AlterReplicaLogDirsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = 0
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", AlterReplicaLogDirPartitionResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 34
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("results", AlterReplicaLogDirTopicResult, Versions(0, LAST), (), array=True),
    )

