"""Generated from CreateAclsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class AclCreation(Struct):
    __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type",)
    FIELDS = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("resource_pattern_type", "int8", Versions(1, LAST), 3),
        Field("principal", "string", Versions(0, LAST), ""),
        Field("host", "string", Versions(0, LAST), ""),
        Field("operation", "int8", Versions(0, LAST), 0),
        Field("permission_type", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Message):
    __slots__ = ("creations",)
    TYPE = "request"
    API_KEY = 30
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("creations", AclCreation, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        creations: list[AclCreation] = UNSET,
    ) -> None:
        self.creations = [] if creations is UNSET else creations

