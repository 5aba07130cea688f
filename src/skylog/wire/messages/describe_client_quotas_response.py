"""Generated from Kafka's DescribeClientQuotasResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class EntityData(Struct):
    entity_type: str = ""
    entity_name: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", Versions(0, LAST), ""),
        Field("entity_name", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class ValueData(Struct):
    key: str = ""
    value: float = 0.0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "float64", Versions(0, LAST), 0.0),
    )


@dataclass(slots=True)
class EntryData(Struct):
    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
        Field("values", ValueData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = field(default_factory=list)
    TYPE = "response"
    API_KEY = 48
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("entries", EntryData, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

