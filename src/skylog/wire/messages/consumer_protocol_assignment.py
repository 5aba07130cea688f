"""Generated from Kafka's ConsumerProtocolAssignment.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartition(Struct):
    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None
    TYPE = "data"
    VERSIONS = Versions(0, 3)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assigned_partitions", TopicPartition, Versions(0, LAST), (), array=True),
        Field("user_data", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

