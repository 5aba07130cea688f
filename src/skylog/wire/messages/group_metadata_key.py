"""Generated from Kafka's GroupMetadataKey.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import NEVER, Field, Message, Versions


@dataclass(slots=True)
class GroupMetadataKey(Message):
    group: str = ""
    TYPE = "coordinator-key"
    API_KEY = 2
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", Versions(0, 0), ""),
    )

