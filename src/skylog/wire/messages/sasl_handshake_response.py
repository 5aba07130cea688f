"""Generated from SaslHandshakeResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, NEVER, UNSET, Field, Message, Versions


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms",)
    TYPE = "response"
    API_KEY = 17
    VERSIONS = Versions(0, 1)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("mechanisms", "string", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is UNSET else mechanisms

