"""Generated from Kafka's DescribeConfigsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribeConfigsSynonym(Struct):
    name: str = ""
    value: str | None = ""
    source: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(1, LAST), ""),
        Field("value", "string", Versions(1, LAST), "", nullable=Versions(0, LAST)),
        Field("source", "int8", Versions(1, LAST), 0),
    )


@dataclass(slots=True)
class DescribeConfigsResourceResult(Struct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)
    config_type: int = 0
    documentation: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("read_only", "bool", Versions(0, LAST), False),
        Field("config_source", "int8", Versions(1, LAST), -1, ignorable=True),
        Field("is_sensitive", "bool", Versions(0, LAST), False),
        Field("synonyms", DescribeConfigsSynonym, Versions(1, LAST), (), array=True, ignorable=True),
        Field("config_type", "int8", Versions(3, LAST), 0, ignorable=True),
        Field("documentation", "string", Versions(3, LAST), "", nullable=Versions(0, LAST), ignorable=True),
    )


@dataclass(slots=True)
class DescribeConfigsResult(Struct):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("configs", DescribeConfigsResourceResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeConfigsResponse(Message):
    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 32
    VERSIONS = Versions(1, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("results", DescribeConfigsResult, Versions(0, LAST), (), array=True),
    )

