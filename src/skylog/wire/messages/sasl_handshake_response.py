"""Generated from Kafka's SaslHandshakeResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


@dataclass(slots=True)
class SaslHandshakeResponse(Message):
    error_code: int = 0
    mechanisms: list[str] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 17
    VERSIONS = Versions(0, 1)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("mechanisms", "string", Versions(0, LAST), (), array=True),
    )

