"""Generated from Kafka's AlterShareGroupOffsetsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = 0
    start_offset: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", AlterShareGroupOffsetsRequestPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 91
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", AlterShareGroupOffsetsRequestTopic, Versions(0, LAST), (), array=True),
    )

