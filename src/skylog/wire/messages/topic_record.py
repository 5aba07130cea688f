"""Generated from TopicRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class TopicRecord(Message):
    __slots__ = ("name", "topic_id",)
    TYPE = "metadata"
    API_KEY = 2
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id

