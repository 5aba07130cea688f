"""Generated from Kafka's ListConfigResourcesRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ListConfigResourcesRequest(Message):
    resource_types: list[int] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 74
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_types", "int8", Versions(1, LAST), (), array=True),
    )

