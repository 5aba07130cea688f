"""Generated from ExpireDelegationTokenRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ExpireDelegationTokenRequest(Message):
    __slots__ = ("hmac", "expiry_time_period_ms",)
    TYPE = "request"
    API_KEY = 40
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("hmac", "bytes", Versions(0, LAST), b""),
        Field("expiry_time_period_ms", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms

