"""Generated from Kafka's ElectLeadersRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ElectLeadersRequest(Message):
    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    timeout_ms: int = 60000
    TYPE = "request"
    API_KEY = 43
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("election_type", "int8", Versions(1, LAST), 0),
        Field("topic_partitions", TopicPartitions, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

