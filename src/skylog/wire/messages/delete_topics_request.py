"""Generated from DeleteTopicsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DeleteTopicState(Struct):
    __slots__ = ("name", "topic_id",)
    FIELDS = (
        Field("name", "string", Versions(6, LAST), None, nullable=Versions(6, LAST)),
        Field("topic_id", "uuid", Versions(6, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        name: str | None = None,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Message):
    __slots__ = ("topics", "topic_names", "timeout_ms",)
    TYPE = "request"
    API_KEY = 20
    VERSIONS = Versions(1, 6)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("topics", DeleteTopicState, Versions(6, LAST), (), array=True),
        Field("topic_names", "string", Versions(0, 5), (), array=True, ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topics: list[DeleteTopicState] = UNSET,
        topic_names: list[str] = UNSET,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.topic_names = [] if topic_names is UNSET else topic_names
        self.timeout_ms = timeout_ms

