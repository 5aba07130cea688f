"""Generated from Kafka's HeartbeatResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class HeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    TYPE = "response"
    API_KEY = 12
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )

