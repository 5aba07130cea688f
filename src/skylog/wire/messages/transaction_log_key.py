"""Generated from Kafka's TransactionLogKey.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import NEVER, Field, Message, Versions


@dataclass(slots=True)
class TransactionLogKey(Message):
    transactional_id: str = ""
    TYPE = "coordinator-key"
    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(0, 0), ""),
    )

