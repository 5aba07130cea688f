"""Generated from Kafka's ExpireDelegationTokenResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ExpireDelegationTokenResponse(Message):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
    TYPE = "response"
    API_KEY = 40
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("expiry_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
    )

