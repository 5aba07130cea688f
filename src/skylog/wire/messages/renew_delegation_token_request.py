"""Generated from RenewDelegationTokenRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class RenewDelegationTokenRequest(Message):
    __slots__ = ("hmac", "renew_period_ms",)
    TYPE = "request"
    API_KEY = 39
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("hmac", "bytes", Versions(0, LAST), b""),
        Field("renew_period_ms", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms

