"""Generated from Kafka's CreateDelegationTokenResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class CreateDelegationTokenResponse(Message):
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0
    TYPE = "response"
    API_KEY = 38
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
        Field("token_requester_principal_type", "string", Versions(3, LAST), ""),
        Field("token_requester_principal_name", "string", Versions(3, LAST), ""),
        Field("issue_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("expiry_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("max_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("token_id", "string", Versions(0, LAST), ""),
        Field("hmac", "bytes", Versions(0, LAST), b""),
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
    )

