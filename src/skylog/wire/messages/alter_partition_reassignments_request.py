"""Generated from Kafka's AlterPartitionReassignmentsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ReassignablePartition(Struct):
    partition_index: int = 0
    replicas: list[int] | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class ReassignableTopic(Struct):
    name: str = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", ReassignablePartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 45
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("allow_replication_factor_change", "bool", Versions(1, LAST), True),
        Field("topics", ReassignableTopic, Versions(0, LAST), (), array=True),
    )

