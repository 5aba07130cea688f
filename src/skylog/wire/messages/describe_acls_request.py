"""Generated from Kafka's DescribeAclsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DescribeAclsRequest(Message):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0
    TYPE = "request"
    API_KEY = 29
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type_filter", "int8", Versions(0, LAST), 0),
        Field("resource_name_filter", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("pattern_type_filter", "int8", Versions(1, LAST), 3),
        Field("principal_filter", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("host_filter", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("operation", "int8", Versions(0, LAST), 0),
        Field("permission_type", "int8", Versions(0, LAST), 0),
    )

