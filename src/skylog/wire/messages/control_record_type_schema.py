"""Generated from Kafka's ControlRecordTypeSchema.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


@dataclass(slots=True)
class ControlRecordTypeSchema(Message):
    type: int = 0
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", "int16", Versions(0, LAST), 0),
    )

