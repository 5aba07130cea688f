"""Generated from Kafka's DefaultPrincipalData.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DefaultPrincipalData(Message):
    type: str = ""
    name: str = ""
    token_authenticated: bool = False
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", "string", Versions(0, LAST), ""),
        Field("name", "string", Versions(0, LAST), ""),
        Field("token_authenticated", "bool", Versions(0, LAST), False),
    )

