"""Generated from Kafka's OffsetDeleteRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Struct, Versions


@dataclass(slots=True)
class OffsetDeleteRequestPartition(Struct):
    partition_index: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class OffsetDeleteRequestTopic(Struct):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", OffsetDeleteRequestPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class OffsetDeleteRequest(Message):
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 47
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", OffsetDeleteRequestTopic, Versions(0, LAST), (), array=True),
    )

