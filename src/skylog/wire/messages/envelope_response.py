"""Generated from Kafka's EnvelopeResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class EnvelopeResponse(Message):
    response_data: bytes | None = None
    error_code: int = 0
    TYPE = "response"
    API_KEY = 58
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("response_data", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )

