"""Generated from Kafka's DescribeDelegationTokenResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = ""
    principal_name: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class DescribedDelegationToken(Struct):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
        Field("token_requester_principal_type", "string", Versions(3, LAST), ""),
        Field("token_requester_principal_name", "string", Versions(3, LAST), ""),
        Field("issue_timestamp", "int64", Versions(0, LAST), 0),
        Field("expiry_timestamp", "int64", Versions(0, LAST), 0),
        Field("max_timestamp", "int64", Versions(0, LAST), 0),
        Field("token_id", "string", Versions(0, LAST), ""),
        Field("hmac", "bytes", Versions(0, LAST), b""),
        Field("renewers", DescribedDelegationTokenRenewer, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeDelegationTokenResponse(Message):
    error_code: int = 0
    tokens: list[DescribedDelegationToken] = field(default_factory=list)
    throttle_time_ms: int = 0
    TYPE = "response"
    API_KEY = 41
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("tokens", DescribedDelegationToken, Versions(0, LAST), (), array=True),
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
    )

