"""Generated from Kafka's ShareGroupStatePartitionMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartitionsInfo(Struct):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class TopicInfo(Struct):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topic_name", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    initialized_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    deleting_topics: list[TopicInfo] = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 15
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("initializing_topics", TopicPartitionsInfo, Versions(0, LAST), (), array=True),
        Field("initialized_topics", TopicPartitionsInfo, Versions(0, LAST), (), array=True),
        Field("deleting_topics", TopicInfo, Versions(0, LAST), (), array=True),
    )

