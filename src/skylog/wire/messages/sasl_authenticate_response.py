"""Generated from SaslAuthenticateResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms",)
    TYPE = "response"
    API_KEY = 36
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("auth_bytes", "bytes", Versions(0, LAST), b""),
        Field("session_lifetime_ms", "int64", Versions(1, LAST), 0, ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms

