"""Generated from ClearElrRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ClearElrRecord(Message):
    __slots__ = ("topic_name",)
    TYPE = "metadata"
    API_KEY = 28
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name

