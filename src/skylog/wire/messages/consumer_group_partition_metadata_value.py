"""Generated from Kafka's ConsumerGroupPartitionMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionMetadata(Struct):
    partition: int = 0
    racks: list[str] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("racks", "string", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class TopicMetadata(Struct):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionMetadata] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("num_partitions", "int32", Versions(0, LAST), 0),
        Field("partition_metadata", PartitionMetadata, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 4
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicMetadata, Versions(0, LAST), (), array=True),
    )

