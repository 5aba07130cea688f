"""Generated from Kafka's RegisterBrokerRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class BrokerEndpoint(Struct):
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
class BrokerFeature(Struct):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("min_supported_version", "int16", Versions(0, LAST), 0),
        Field("max_supported_version", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class RegisterBrokerRecord(Message):
    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: int = 0
    end_points: list[BrokerEndpoint] = field(default_factory=list)
    features: list[BrokerFeature] = field(default_factory=list)
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: list[Uuid] = field(default_factory=list)
    cordoned_log_dirs: list[Uuid] | None = None
    TYPE = "metadata"
    API_KEY = 0
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("is_migrating_zk_broker", "bool", Versions(2, LAST), False),
        Field("incarnation_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("broker_epoch", "int64", Versions(0, LAST), 0),
        Field("end_points", BrokerEndpoint, Versions(0, LAST), (), array=True),
        Field("features", BrokerFeature, Versions(0, LAST), (), array=True),
        Field("rack", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("fenced", "bool", Versions(0, LAST), True),
        Field("in_controlled_shutdown", "bool", Versions(1, LAST), False),
        Field("log_dirs", "uuid", Versions(3, LAST), (), array=True, tag=0, tagged=Versions(3, LAST)),
        Field("cordoned_log_dirs", "uuid", Versions(4, LAST), None, array=True, nullable=Versions(4, LAST), tag=1, tagged=Versions(4, LAST)),
    )

