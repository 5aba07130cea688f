"""Generated from Kafka's ConsumerGroupRegularExpressionValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = field(default_factory=list)
    version: int = 0
    timestamp: int = 0
    TYPE = "coordinator-value"
    API_KEY = 16
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", Versions(0, LAST), (), array=True),
        Field("version", "int64", Versions(0, LAST), 0),
        Field("timestamp", "int64", Versions(0, LAST), 0),
    )

