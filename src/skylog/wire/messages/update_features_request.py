"""Generated from Kafka's UpdateFeaturesRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class FeatureUpdateKey(Struct):
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", Versions(0, LAST), ""),
        Field("max_version_level", "int16", Versions(0, LAST), 0),
        Field("allow_downgrade", "bool", Versions(0, 0), False),
        Field("upgrade_type", "int8", Versions(1, LAST), 1),
    )


@dataclass(slots=True)
class UpdateFeaturesRequest(Message):
    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: bool = False
    TYPE = "request"
    API_KEY = 57
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("feature_updates", FeatureUpdateKey, Versions(0, LAST), (), array=True),
        Field("validate_only", "bool", Versions(1, LAST), False),
    )

