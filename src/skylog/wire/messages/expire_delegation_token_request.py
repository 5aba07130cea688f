"""Generated from Kafka's ExpireDelegationTokenRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ExpireDelegationTokenRequest(Message):
    hmac: bytes = b""
    expiry_time_period_ms: int = 0
    TYPE = "request"
    API_KEY = 40
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", Versions(0, LAST), b""),
        Field("expiry_time_period_ms", "int64", Versions(0, LAST), 0),
    )

