"""Generated from DescribeConfigsResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribeConfigsSynonym(Struct):
    __slots__ = ("name", "value", "source",)
    FIELDS = (
        Field("name", "string", Versions(1, LAST), ""),
        Field("value", "string", Versions(1, LAST), "", nullable=Versions(0, LAST)),
        Field("source", "int8", Versions(1, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Struct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type", "documentation",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("read_only", "bool", Versions(0, LAST), False),
        Field("config_source", "int8", Versions(1, LAST), -1, ignorable=True),
        Field("is_sensitive", "bool", Versions(0, LAST), False),
        Field("synonyms", DescribeConfigsSynonym, Versions(1, LAST), (), array=True, ignorable=True),
        Field("config_type", "int8", Versions(3, LAST), 0, ignorable=True),
        Field("documentation", "string", Versions(3, LAST), "", nullable=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = UNSET,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is UNSET else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("configs", DescribeConfigsResourceResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is UNSET else configs


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)
    TYPE = "response"
    API_KEY = 32
    VERSIONS = Versions(1, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("results", DescribeConfigsResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results

