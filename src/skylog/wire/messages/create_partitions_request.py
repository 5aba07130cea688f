"""Generated from Kafka's CreatePartitionsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_ids", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class CreatePartitionsTopic(Struct):
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("count", "int32", Versions(0, LAST), 0),
        Field("assignments", CreatePartitionsAssignment, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    validate_only: bool = False
    TYPE = "request"
    API_KEY = 37
    VERSIONS = Versions(0, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatePartitionsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("validate_only", "bool", Versions(0, LAST), False),
    )

