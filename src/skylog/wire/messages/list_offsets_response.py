"""Generated from Kafka's ListOffsetsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ListOffsetsPartitionResponse(Struct):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("timestamp", "int64", Versions(1, LAST), -1),
        Field("offset", "int64", Versions(1, LAST), -1),
        Field("leader_epoch", "int32", Versions(4, LAST), -1),
    )


@dataclass(slots=True)
class ListOffsetsTopicResponse(Struct):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", ListOffsetsPartitionResponse, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ListOffsetsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 2
    VERSIONS = Versions(1, 11)
    FLEXIBLE = Versions(6, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(2, LAST), 0, ignorable=True),
        Field("topics", ListOffsetsTopicResponse, Versions(0, LAST), (), array=True),
    )

