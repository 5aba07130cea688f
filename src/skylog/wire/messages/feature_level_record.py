"""Generated from Kafka's FeatureLevelRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class FeatureLevelRecord(Message):
    name: str = ""
    feature_level: int = 0
    TYPE = "metadata"
    API_KEY = 12
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("feature_level", "int16", Versions(0, LAST), 0),
    )

