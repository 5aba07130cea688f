"""Generated from RemoveTopicRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class RemoveTopicRecord(Message):
    __slots__ = ("topic_id",)
    TYPE = "metadata"
    API_KEY = 9
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id = topic_id

