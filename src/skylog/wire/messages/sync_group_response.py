"""Generated from Kafka's SyncGroupResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class SyncGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    TYPE = "response"
    API_KEY = 14
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("protocol_type", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("protocol_name", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
        Field("assignment", "bytes", Versions(0, LAST), b""),
    )

