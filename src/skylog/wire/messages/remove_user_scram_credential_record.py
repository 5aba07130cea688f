"""Generated from Kafka's RemoveUserScramCredentialRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class RemoveUserScramCredentialRecord(Message):
    name: str = ""
    mechanism: int = 0
    TYPE = "metadata"
    API_KEY = 22
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
    )

