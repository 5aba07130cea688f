"""Generated from Kafka's AbortTransactionRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class AbortTransactionRecord(Message):
    reason: str | None = None
    TYPE = "metadata"
    API_KEY = 25
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("reason", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

