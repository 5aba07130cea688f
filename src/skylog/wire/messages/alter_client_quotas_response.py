"""Generated from Kafka's AlterClientQuotasResponse.json; do not edit."""

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
class EntryData(Struct):
    error_code: int = 0
    error_message: str | None = ""
    entity: list[EntityData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    entries: list[EntryData] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 49
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("entries", EntryData, Versions(0, LAST), (), array=True),
    )

