"""Generated from Kafka's ControllerRegistrationRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
        Field("security_protocol", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class Feature(Struct):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("min_supported_version", "int16", Versions(0, LAST), 0),
        Field("max_supported_version", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class ControllerRegistrationRequest(Message):
    controller_id: int = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 70
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("controller_id", "int32", Versions(0, LAST), 0),
        Field("incarnation_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("zk_migration_ready", "bool", Versions(0, LAST), False),
        Field("listeners", Listener, Versions(0, LAST), (), array=True),
        Field("features", Feature, Versions(0, LAST), (), array=True),
    )

