"""Generated from Kafka's ResponseHeader.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ResponseHeader(Message):
    correlation_id: int = 0
    TYPE = "header"
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("correlation_id", "int32", Versions(0, LAST), 0),
    )

