"""Generated from Kafka's FenceBrokerRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class FenceBrokerRecord(Message):
    id: int = 0
    epoch: int = 0
    TYPE = "metadata"
    API_KEY = 7
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "int32", Versions(0, LAST), 0),
        Field("epoch", "int64", Versions(0, LAST), 0),
    )

