"""Generated from Kafka's StreamsGroupDescribeRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class StreamsGroupDescribeRequest(Message):
    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False
    TYPE = "request"
    API_KEY = 89
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", "string", Versions(0, LAST), (), array=True),
        Field("include_authorized_operations", "bool", Versions(0, LAST), False),
    )

