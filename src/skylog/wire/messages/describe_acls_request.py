"""Generated from DescribeAclsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class DescribeAclsRequest(Message):
    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type",)
    TYPE = "request"
    API_KEY = 29
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("resource_type_filter", "int8", Versions(0, LAST), 0),
        Field("resource_name_filter", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("pattern_type_filter", "int8", Versions(1, LAST), 3),
        Field("principal_filter", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("host_filter", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("operation", "int8", Versions(0, LAST), 0),
        Field("permission_type", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type

