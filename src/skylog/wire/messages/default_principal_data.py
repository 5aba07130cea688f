"""Generated from DefaultPrincipalData.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class DefaultPrincipalData(Message):
    __slots__ = ("type", "name", "token_authenticated",)
    TYPE = "data"
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("type", "string", Versions(0, LAST), ""),
        Field("name", "string", Versions(0, LAST), ""),
        Field("token_authenticated", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated

