"""Generated from Kafka's ShareGroupTargetAssignmentMemberKey.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import NEVER, Field, Message, Versions


@dataclass(slots=True)
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""
    TYPE = "coordinator-key"
    API_KEY = 13
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, 0), ""),
        Field("member_id", "string", Versions(0, 0), ""),
    )

