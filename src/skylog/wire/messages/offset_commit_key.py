"""Generated from OffsetCommitKey.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class OffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition",)
    TYPE = "coordinator-key"
    API_KEY = 1
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("group", "string", Versions(0, 0), ""),
        Field("topic", "string", Versions(0, 0), ""),
        Field("partition", "int32", Versions(0, 0), 0),
    )

    def __init__(
        self,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition

