"""Generated from DescribeConfigsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribeConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configuration_keys",)
    FIELDS = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("configuration_keys", "string", Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = UNSET,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is UNSET else configuration_keys


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation",)
    TYPE = "request"
    API_KEY = 32
    VERSIONS = Versions(1, 4)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("resources", DescribeConfigsResource, Versions(0, LAST), (), array=True),
        Field("include_synonyms", "bool", Versions(1, LAST), False),
        Field("include_documentation", "bool", Versions(3, LAST), False),
    )

    def __init__(
        self,
        resources: list[DescribeConfigsResource] = UNSET,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is UNSET else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation

