"""Generated from Kafka's FindCoordinatorRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class FindCoordinatorRequest(Message):
    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 10
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(0, 3), ""),
        Field("key_type", "int8", Versions(1, LAST), 0),
        Field("coordinator_keys", "string", Versions(4, LAST), (), array=True),
    )

