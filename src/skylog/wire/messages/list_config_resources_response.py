"""Generated from Kafka's ListConfigResourcesResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ConfigResource(Struct):
    resource_name: str = ""
    resource_type: int = 16
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("resource_type", "int8", Versions(1, LAST), 16, ignorable=True),
    )


@dataclass(slots=True)
class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 74
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("config_resources", ConfigResource, Versions(0, LAST), (), array=True),
    )

