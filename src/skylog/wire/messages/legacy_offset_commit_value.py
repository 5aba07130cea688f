"""Generated from Kafka's LegacyOffsetCommitValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import NEVER, Field, Message, Versions


@dataclass(slots=True)
class LegacyOffsetCommitValue(Message):
    offset: int = 0
    metadata: str = ""
    commit_timestamp: int = 0
    TYPE = "coordinator-value"
    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("offset", "int64", Versions(0, 0), 0),
        Field("metadata", "string", Versions(0, 0), ""),
        Field("commit_timestamp", "int64", Versions(0, 0), 0),
    )

