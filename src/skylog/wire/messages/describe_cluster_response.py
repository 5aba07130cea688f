"""Generated from DescribeClusterResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribeClusterBroker(Struct):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced",)
    FIELDS = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
        Field("rack", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("is_fenced", "bool", Versions(2, LAST), False),
    )

    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations",)
    TYPE = "response"
    API_KEY = 60
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("endpoint_type", "int8", Versions(1, LAST), 1),
        Field("cluster_id", "string", Versions(0, LAST), ""),
        Field("controller_id", "int32", Versions(0, LAST), -1),
        Field("brokers", DescribeClusterBroker, Versions(0, LAST), (), array=True),
        Field("cluster_authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = UNSET,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is UNSET else brokers
        self.cluster_authorized_operations = cluster_authorized_operations

