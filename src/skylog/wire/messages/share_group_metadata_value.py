"""Generated from Kafka's ShareGroupMetadataValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ShareGroupMetadataValue(Message):
    epoch: int = 0
    metadata_hash: int = 0
    TYPE = "coordinator-value"
    API_KEY = 11
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("metadata_hash", "int64", Versions(0, LAST), 0),
    )

