"""Generated from Kafka's ClientQuotaRecord.json; do not edit."""

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
class ClientQuotaRecord(Message):
    entity: list[EntityData] = field(default_factory=list)
    key: str = ""
    value: float = 0.0
    remove: bool = False
    TYPE = "metadata"
    API_KEY = 14
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "float64", Versions(0, LAST), 0.0),
        Field("remove", "bool", Versions(0, LAST), False),
    )

