"""Generated from Kafka's DescribeAclsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AclDescription(Struct):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("operation", "int8", Versions(0, LAST), 0),
        Field("permission_type", "int8", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class DescribeAclsResource(Struct):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("pattern_type", "int8", Versions(1, LAST), 3),
        Field("acls", AclDescription, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeAclsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 29
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("resources", DescribeAclsResource, Versions(0, LAST), (), array=True),
    )

