"""Generated from Kafka's AlterClientQuotasRequest.json; do not edit."""

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
class OpData(Struct):
    key: str = ""
    value: float = 0.0
    remove: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "float64", Versions(0, LAST), 0.0),
        Field("remove", "bool", Versions(0, LAST), False),
    )


@dataclass(slots=True)
class EntryData(Struct):
    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
        Field("ops", OpData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AlterClientQuotasRequest(Message):
    entries: list[EntryData] = field(default_factory=list)
    validate_only: bool = False
    TYPE = "request"
    API_KEY = 49
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entries", EntryData, Versions(0, LAST), (), array=True),
        Field("validate_only", "bool", Versions(0, LAST), False),
    )

