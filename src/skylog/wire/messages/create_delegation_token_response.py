"""Generated from CreateDelegationTokenResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class CreateDelegationTokenResponse(Message):
    __slots__ = ("error_code", "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac", "throttle_time_ms",)
    TYPE = "response"
    API_KEY = 38
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    FIELDS = (
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

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms

