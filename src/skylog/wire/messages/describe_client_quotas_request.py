"""Generated from Kafka's DescribeClientQuotasRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ComponentData(Struct):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", Versions(0, LAST), ""),
        Field("match_type", "int8", Versions(0, LAST), 0),
        Field("match", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = field(default_factory=list)
    strict: bool = False
    TYPE = "request"
    API_KEY = 48
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("components", ComponentData, Versions(0, LAST), (), array=True),
        Field("strict", "bool", Versions(0, LAST), False),
    )

