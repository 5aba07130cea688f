"""Generated from DescribeDelegationTokenResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribedDelegationTokenRenewer(Struct):
    __slots__ = ("principal_type", "principal_name",)
    FIELDS = (
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class DescribedDelegationToken(Struct):
    __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers",)
    FIELDS = (
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

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] = UNSET,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is UNSET else renewers


class DescribeDelegationTokenResponse(Message):
    __slots__ = ("error_code", "tokens", "throttle_time_ms",)
    TYPE = "response"
    API_KEY = 41
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("tokens", DescribedDelegationToken, Versions(0, LAST), (), array=True),
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = UNSET,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is UNSET else tokens
        self.throttle_time_ms = throttle_time_ms

