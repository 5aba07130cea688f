"""Generated from RemoveUserScramCredentialRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class RemoveUserScramCredentialRecord(Message):
    __slots__ = ("name", "mechanism",)
    TYPE = "metadata"
    API_KEY = 22
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism

