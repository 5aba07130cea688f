"""Generated from BrokerRegistrationRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Listener(Struct):
    __slots__ = ("name", "host", "port", "security_protocol",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
        Field("security_protocol", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class Feature(Struct):
    __slots__ = ("name", "min_supported_version", "max_supported_version",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("min_supported_version", "int16", Versions(0, LAST), 0),
        Field("max_supported_version", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class BrokerRegistrationRequest(Message):
    __slots__ = ("broker_id", "cluster_id", "incarnation_id", "listeners", "features", "rack", "is_migrating_zk_broker", "log_dirs", "previous_broker_epoch",)
    TYPE = "request"
    API_KEY = 62
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
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

    def __init__(
        self,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: Uuid = ZERO_UUID,
        listeners: list[Listener] = UNSET,
        features: list[Feature] = UNSET,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[Uuid] = UNSET,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is UNSET else listeners
        self.features = [] if features is UNSET else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.previous_broker_epoch = previous_broker_epoch

