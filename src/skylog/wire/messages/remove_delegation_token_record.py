"""Generated from RemoveDelegationTokenRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class RemoveDelegationTokenRecord(Message):
    __slots__ = ("token_id",)
    TYPE = "metadata"
    API_KEY = 26
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("token_id", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        token_id: str = "",
    ) -> None:
        self.token_id = token_id

