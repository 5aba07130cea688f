"""Generated from ExpireDelegationTokenResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ExpireDelegationTokenResponse(Message):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms",)
    TYPE = "response"
    API_KEY = 40
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("expiry_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms

