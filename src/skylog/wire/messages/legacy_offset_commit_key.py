"""Generated from Kafka's LegacyOffsetCommitKey.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import NEVER, Field, Message, Versions


@dataclass(slots=True)
class LegacyOffsetCommitKey(Message):
    group: str = ""
    topic: str = ""
    partition: int = 0
    TYPE = "coordinator-key"
    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", Versions(0, 0), ""),
        Field("topic", "string", Versions(0, 0), ""),
        Field("partition", "int32", Versions(0, 0), 0),
    )

