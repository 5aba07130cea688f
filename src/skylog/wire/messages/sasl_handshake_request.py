"""Generated from SaslHandshakeRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)
    TYPE = "request"
    API_KEY = 17
    VERSIONS = Versions(0, 1)
    FLEXIBLE = NEVER
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("mechanism", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism

