"""Generated from Kafka's CreateTopicsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class CreatableReplicaAssignment(Struct):
    partition_index: int = 0
    broker_ids: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("broker_ids", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class CreatableTopicConfig(Struct):
    name: str = ""
    value: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class CreatableTopic(Struct):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    configs: list[CreatableTopicConfig] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("num_partitions", "int32", Versions(0, LAST), 0),
        Field("replication_factor", "int16", Versions(0, LAST), 0),
        Field("assignments", CreatableReplicaAssignment, Versions(0, LAST), (), array=True),
        Field("configs", CreatableTopicConfig, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: int = 60000
    validate_only: bool = False
    TYPE = "request"
    API_KEY = 19
    VERSIONS = Versions(2, 7)
    FLEXIBLE = Versions(5, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatableTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("validate_only", "bool", Versions(1, LAST), False),
    )

