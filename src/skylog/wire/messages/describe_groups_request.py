"""Generated from Kafka's DescribeGroupsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DescribeGroupsRequest(Message):
    groups: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False
    TYPE = "request"
    API_KEY = 15
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(5, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", "string", Versions(0, LAST), (), array=True),
        Field("include_authorized_operations", "bool", Versions(3, LAST), False),
    )

