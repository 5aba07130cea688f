"""Generated from Kafka's DescribeConfigsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribeConfigsResource(Struct):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("configuration_keys", "string", Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )


@dataclass(slots=True)
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: bool = False
    include_documentation: bool = False
    TYPE = "request"
    API_KEY = 32
    VERSIONS = Versions(1, 4)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", DescribeConfigsResource, Versions(0, LAST), (), array=True),
        Field("include_synonyms", "bool", Versions(1, LAST), False),
        Field("include_documentation", "bool", Versions(3, LAST), False),
    )

