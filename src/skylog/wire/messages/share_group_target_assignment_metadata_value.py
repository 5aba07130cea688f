"""Generated from Kafka's ShareGroupTargetAssignmentMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = 0
    assignment_timestamp: int = 0
    TYPE = "coordinator-value"
    API_KEY = 12
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assignment_epoch", "int32", Versions(0, LAST), 0),
        Field("assignment_timestamp", "int64", Versions(0, LAST), 0, tag=0, tagged=Versions(0, LAST), ignorable=True),
    )

