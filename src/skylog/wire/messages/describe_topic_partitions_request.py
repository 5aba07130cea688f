"""Generated from Kafka's DescribeTopicPartitionsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicRequest(Struct):
    name: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
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
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = field(default_factory=list)
    response_partition_limit: int = 2000
    cursor: Cursor | None = None
    TYPE = "request"
    API_KEY = 75
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, Versions(0, LAST), (), array=True),
        Field("response_partition_limit", "int32", Versions(0, LAST), 2000),
        Field("cursor", Cursor, Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

