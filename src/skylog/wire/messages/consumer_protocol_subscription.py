"""Generated from Kafka's ConsumerProtocolSubscription.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartition(Struct):
    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(1, LAST), ""),
        Field("partitions", "int32", Versions(1, LAST), (), array=True),
    )


@dataclass(slots=True)
class ConsumerProtocolSubscription(Message):
    topics: list[str] = field(default_factory=list)
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list)
    generation_id: int = -1
    rack_id: str | None = None
    TYPE = "data"
    VERSIONS = Versions(0, 3)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", Versions(0, LAST), (), array=True),
        Field("user_data", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("owned_partitions", TopicPartition, Versions(1, LAST), (), array=True, ignorable=True),
        Field("generation_id", "int32", Versions(2, LAST), -1, ignorable=True),
        Field("rack_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST), ignorable=True),
    )

