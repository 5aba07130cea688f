"""Generated from IncrementalAlterConfigsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class AlterableConfig(Struct):
    __slots__ = ("name", "config_operation", "value",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("config_operation", "int8", Versions(0, LAST), 0),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
    ) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value


class AlterConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configs",)
    FIELDS = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("configs", AlterableConfig, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = UNSET,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is UNSET else configs


class IncrementalAlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only",)
    TYPE = "request"
    API_KEY = 44
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("resources", AlterConfigsResource, Versions(0, LAST), (), array=True),
        Field("validate_only", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        resources: list[AlterConfigsResource] = UNSET,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is UNSET else resources
        self.validate_only = validate_only

