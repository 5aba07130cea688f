"""Generated from Kafka's ApiVersionsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ApiVersion(Struct):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("api_key", "int16", Versions(0, LAST), 0),
        Field("min_version", "int16", Versions(0, LAST), 0),
        Field("max_version", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class SupportedFeatureKey(Struct):
    name: str = ""
    min_version: int = 0
    max_version: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(3, LAST), ""),
        Field("min_version", "int16", Versions(3, LAST), 0),
        Field("max_version", "int16", Versions(3, LAST), 0),
    )


@dataclass(slots=True)
class FinalizedFeatureKey(Struct):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(3, LAST), ""),
        Field("max_version_level", "int16", Versions(3, LAST), 0),
        Field("min_version_level", "int16", Versions(3, LAST), 0),
    )


@dataclass(slots=True)
class ApiVersionsResponse(Message):
    error_code: int = 0
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = field(default_factory=list)
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = field(default_factory=list)
    zk_migration_ready: bool = False
    TYPE = "response"
    API_KEY = 18
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(3, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("api_keys", ApiVersion, Versions(0, LAST), (), array=True),
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("supported_features", SupportedFeatureKey, Versions(3, LAST), (), array=True, tag=0, tagged=Versions(3, LAST), ignorable=True),
        Field("finalized_features_epoch", "int64", Versions(3, LAST), -1, tag=1, tagged=Versions(3, LAST), ignorable=True),
        Field("finalized_features", FinalizedFeatureKey, Versions(3, LAST), (), array=True, tag=2, tagged=Versions(3, LAST), ignorable=True),
        Field("zk_migration_ready", "bool", Versions(3, LAST), False, tag=3, tagged=Versions(3, LAST), ignorable=True),
    )

