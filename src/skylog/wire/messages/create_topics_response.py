"""Generated from Kafka's CreateTopicsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class CreatableTopicConfigs(Struct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(5, LAST), ""),
        Field("value", "string", Versions(5, LAST), "", nullable=Versions(5, LAST)),
        Field("read_only", "bool", Versions(5, LAST), False),
        Field("config_source", "int8", Versions(5, LAST), -1, ignorable=True),
        Field("is_sensitive", "bool", Versions(5, LAST), False),
    )


@dataclass(slots=True)
class CreatableTopicResult(Struct):
    name: str = ""
    topic_id: Uuid = ZERO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(7, LAST), ZERO_UUID, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(1, LAST), "", nullable=Versions(0, LAST), ignorable=True),
        Field("topic_config_error_code", "int16", Versions(5, LAST), 0, tag=0, tagged=Versions(5, LAST), ignorable=True),
        Field("num_partitions", "int32", Versions(5, LAST), -1, ignorable=True),
        Field("replication_factor", "int16", Versions(5, LAST), -1, ignorable=True),
        Field("configs", CreatableTopicConfigs, Versions(5, LAST), (), array=True, nullable=Versions(5, LAST), ignorable=True),
    )


@dataclass(slots=True)
class CreateTopicsResponse(Message):
    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 19
    VERSIONS = Versions(2, 7)
    FLEXIBLE = Versions(5, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(2, LAST), 0, ignorable=True),
        Field("topics", CreatableTopicResult, Versions(0, LAST), (), array=True),
    )

