"""Generated from Kafka's RequestHeader.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class RequestHeader(Message):
    request_api_key: int = 0
    request_api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = ""
    TYPE = "header"
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("request_api_key", "int16", Versions(0, LAST), 0),
        Field("request_api_version", "int16", Versions(0, LAST), 0),
        Field("correlation_id", "int32", Versions(0, LAST), 0),
        Field("client_id", "string", Versions(1, LAST), "", nullable=Versions(1, LAST), never_flexible=True),
    )

