"""Generated from DisklessDeleteTopicsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessDeletableTopic(Struct):
    __slots__ = ("topic_id",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id = topic_id


class DisklessDeleteTopicsRequest(Message):
    __slots__ = ("topics", "coordinator_id", "timeout_ms",)
    TYPE = "request"
    API_KEY = 94
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", DisklessDeletableTopic, Versions(0, LAST), (), array=True),
        Field("coordinator_id", "int32", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        topics: list[DisklessDeletableTopic] = UNSET,
        coordinator_id: int = -1,
        timeout_ms: int = 60000,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.coordinator_id = coordinator_id
        self.timeout_ms = timeout_ms

