"""Generated from Kafka's ShareGroupTargetAssignmentMetadataKey.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import NEVER, Field, Message, Versions


@dataclass(slots=True)
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""
    TYPE = "coordinator-key"
    API_KEY = 12
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, 0), ""),
    )

