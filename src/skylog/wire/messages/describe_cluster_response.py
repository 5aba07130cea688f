"""Generated from Kafka's DescribeClusterResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribeClusterBroker(Struct):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
        Field("rack", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("is_fenced", "bool", Versions(2, LAST), False),
    )


@dataclass(slots=True)
class DescribeClusterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648
    TYPE = "response"
    API_KEY = 60
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("endpoint_type", "int8", Versions(1, LAST), 1),
        Field("cluster_id", "string", Versions(0, LAST), ""),
        Field("controller_id", "int32", Versions(0, LAST), -1),
        Field("brokers", DescribeClusterBroker, Versions(0, LAST), (), array=True),
        Field("cluster_authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )

