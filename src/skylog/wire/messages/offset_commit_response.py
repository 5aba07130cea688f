"""Generated from Kafka's OffsetCommitResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class OffsetCommitResponsePartition(Struct):
    partition_index: int = 0
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class OffsetCommitResponseTopic(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, 9), "", ignorable=True),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", OffsetCommitResponsePartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetCommitResponse(Message):
    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 8
    VERSIONS = Versions(2, 10)
    FLEXIBLE = Versions(8, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(3, LAST), 0, ignorable=True),
        Field("topics", OffsetCommitResponseTopic, Versions(0, LAST), (), array=True),
    )

