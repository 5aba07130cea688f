"""Generated from Kafka's ListPartitionReassignmentsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ListPartitionReassignmentsTopics(Struct):
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partition_indexes", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
    TYPE = "request"
    API_KEY = 46
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("topics", ListPartitionReassignmentsTopics, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

