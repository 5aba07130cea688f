"""Generated from DisklessPinFilesRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessPinTopic(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class DisklessPin(Struct):
    __slots__ = ("object_key", "writer_id", "epoch", "expires_ms", "topics",)
    FIELDS = (
        Field("object_key", "string", Versions(0, LAST), ""),
        Field("writer_id", "string", Versions(0, LAST), ""),
        Field("epoch", "int64", Versions(0, LAST), 0),
        Field("expires_ms", "int64", Versions(0, LAST), 0),
        Field("topics", DisklessPinTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        object_key: str = "",
        writer_id: str = "",
        epoch: int = 0,
        expires_ms: int = 0,
        topics: list[DisklessPinTopic] = UNSET,
    ) -> None:
        self.object_key = object_key
        self.writer_id = writer_id
        self.epoch = epoch
        self.expires_ms = expires_ms
        self.topics = [] if topics is UNSET else topics


class DisklessPinFilesRequest(Message):
    __slots__ = ("coordinator_id", "pins", "released_keys", "timeout_ms",)
    TYPE = "request"
    API_KEY = 507
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("coordinator_id", "int32", Versions(0, LAST), 0),
        Field("pins", DisklessPin, Versions(0, LAST), (), array=True),
        Field("released_keys", "string", Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        coordinator_id: int = 0,
        pins: list[DisklessPin] = UNSET,
        released_keys: list[str] = UNSET,
        timeout_ms: int = 60000,
    ) -> None:
        self.coordinator_id = coordinator_id
        self.pins = [] if pins is UNSET else pins
        self.released_keys = [] if released_keys is UNSET else released_keys
        self.timeout_ms = timeout_ms

