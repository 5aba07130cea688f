"""Generated from GroupMetadataKey.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class GroupMetadataKey(Message):
    __slots__ = ("group",)
    TYPE = "coordinator-key"
    API_KEY = 2
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("group", "string", Versions(0, 0), ""),
    )

    def __init__(
        self,
        group: str = "",
    ) -> None:
        self.group = group

