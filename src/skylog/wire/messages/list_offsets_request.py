"""Generated from Kafka's ListOffsetsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ListOffsetsPartition(Struct):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(4, LAST), -1, ignorable=True),
        Field("timestamp", "int64", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class ListOffsetsTopic(Struct):
    name: str = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", ListOffsetsPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ListOffsetsRequest(Message):
    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    TYPE = "request"
    API_KEY = 2
    VERSIONS = Versions(1, 11)
    FLEXIBLE = Versions(6, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", Versions(0, LAST), 0),
        Field("isolation_level", "int8", Versions(2, LAST), 0),
        Field("topics", ListOffsetsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(10, LAST), 0, ignorable=True),
    )

