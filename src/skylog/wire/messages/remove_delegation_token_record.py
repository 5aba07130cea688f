"""Generated from Kafka's RemoveDelegationTokenRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class RemoveDelegationTokenRecord(Message):
    token_id: str = ""
    TYPE = "metadata"
    API_KEY = 26
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("token_id", "string", Versions(0, LAST), ""),
    )

