"""Generated from Kafka's IncrementalAlterConfigsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AlterableConfig(Struct):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("config_operation", "int8", Versions(0, LAST), 0),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class AlterConfigsResource(Struct):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("configs", AlterableConfig, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class IncrementalAlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False
    TYPE = "request"
    API_KEY = 44
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", AlterConfigsResource, Versions(0, LAST), (), array=True),
        Field("validate_only", "bool", Versions(0, LAST), False),
    )

