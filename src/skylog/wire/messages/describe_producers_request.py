"""Generated from Kafka's DescribeProducersRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicRequest(Struct):
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partition_indexes", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 61
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, Versions(0, LAST), (), array=True),
    )

