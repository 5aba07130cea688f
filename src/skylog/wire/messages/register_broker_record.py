"""Generated from RegisterBrokerRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class BrokerEndpoint(Struct):
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


class BrokerFeature(Struct):
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


class RegisterBrokerRecord(Message):
    __slots__ = ("broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs",)
    TYPE = "metadata"
    API_KEY = 0
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
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

    def __init__(
        self,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: Uuid = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[BrokerEndpoint] = UNSET,
        features: list[BrokerFeature] = UNSET,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[Uuid] = UNSET,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is UNSET else end_points
        self.features = [] if features is UNSET else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs

