"""Generated from Kafka's BrokerRegistrationRequest.json; do not edit."""

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
class BrokerRegistrationRequest(Message):
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: list[Uuid] = field(default_factory=list)
    previous_broker_epoch: int = -1
    TYPE = "request"
    API_KEY = 62
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("cluster_id", "string", Versions(0, LAST), ""),
        Field("incarnation_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("listeners", Listener, Versions(0, LAST), (), array=True),
        Field("features", Feature, Versions(0, LAST), (), array=True),
        Field("rack", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("is_migrating_zk_broker", "bool", Versions(1, LAST), False),
        Field("log_dirs", "uuid", Versions(2, LAST), (), array=True, ignorable=True),
        Field("previous_broker_epoch", "int64", Versions(3, LAST), -1, ignorable=True),
    )

