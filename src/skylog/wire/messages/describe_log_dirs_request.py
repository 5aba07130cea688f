"""Generated from Kafka's DescribeLogDirsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribableLogDirTopic(Struct):
    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)
    TYPE = "request"
    API_KEY = 35
    VERSIONS = Versions(1, 5)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DescribableLogDirTopic, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

