"""Generated from Kafka's EndTxnMarker.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


@dataclass(slots=True)
class EndTxnMarker(Message):
    coordinator_epoch: int = 0
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("coordinator_epoch", "int32", Versions(0, LAST), 0),
    )

