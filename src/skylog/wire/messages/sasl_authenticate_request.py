"""Generated from SaslAuthenticateRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)
    TYPE = "request"
    API_KEY = 36
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("auth_bytes", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes

