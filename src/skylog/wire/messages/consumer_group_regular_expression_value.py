"""Generated from ConsumerGroupRegularExpressionValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = ("topics", "version", "timestamp",)
    TYPE = "coordinator-value"
    API_KEY = 16
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topics", "string", Versions(0, LAST), (), array=True),
        Field("version", "int64", Versions(0, LAST), 0),
        Field("timestamp", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topics: list[str] = UNSET,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.version = version
        self.timestamp = timestamp

