"""Generated from Kafka's DeleteGroupsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DeleteGroupsRequest(Message):
    groups_names: list[str] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 42
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups_names", "string", Versions(0, LAST), (), array=True),
    )

