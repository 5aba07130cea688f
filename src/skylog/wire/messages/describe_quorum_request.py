"""Generated from Kafka's DescribeQuorumRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class TopicData(Struct):
    topic_name: str = ""
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeQuorumRequest(Message):
    topics: list[TopicData] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 55
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )

