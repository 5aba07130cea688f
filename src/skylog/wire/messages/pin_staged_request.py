"""Generated from PinStagedRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PinTopic(Struct):
    __slots__ = ("topic_name", "topic_id", "partitions",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class PinObject(Struct):
    __slots__ = ("object_key", "topics",)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("topics", PinTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        object_key: str = "",
        topics: list[PinTopic] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.topics = [] if topics is UNSET else topics


class PinStagedRequest(Message):
    __slots__ = ("writer_id", "epoch", "lifetime_ms", "release", "objects", "timeout_ms",)
    TYPE = "request"
    API_KEY = 503
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("writer_id", "string", Versions(0, LAST), ""),
        Field("epoch", "int64", Versions(0, LAST), 0),
        Field("lifetime_ms", "int64", Versions(0, LAST), 0),
        Field("release", "bool", Versions(0, LAST), False),
        Field("objects", PinObject, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        writer_id: str = "",
        epoch: int = 0,
        lifetime_ms: int = 0,
        release: bool = False,
        objects: list[PinObject] = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.writer_id = writer_id
        self.epoch = epoch
        self.lifetime_ms = lifetime_ms
        self.release = release
        self.objects = [] if objects is UNSET else objects
        self.timeout_ms = timeout_ms

