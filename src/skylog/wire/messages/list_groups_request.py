"""Generated from Kafka's ListGroupsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ListGroupsRequest(Message):
    states_filter: list[str] = field(default_factory=list)
    types_filter: list[str] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 16
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("states_filter", "string", Versions(4, LAST), (), array=True),
        Field("types_filter", "string", Versions(5, LAST), (), array=True),
    )

