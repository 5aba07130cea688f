"""Generated from Kafka's RemoveAccessControlEntryRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class RemoveAccessControlEntryRecord(Message):
    id: Uuid = ZERO_UUID
    TYPE = "metadata"
    API_KEY = 19
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

