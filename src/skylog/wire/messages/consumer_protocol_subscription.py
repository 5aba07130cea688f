"""Generated from ConsumerProtocolSubscription.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, NEVER, UNSET, Field, Message, Struct, Versions


class TopicPartition(Struct):
    __slots__ = ("topic", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(1, LAST), ""),
        Field("partitions", "int32", Versions(1, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is UNSET else partitions


class ConsumerProtocolSubscription(Message):
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id",)
    TYPE = "data"
    VERSIONS = Versions(0, 3)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("topics", "string", Versions(0, LAST), (), array=True),
        Field("user_data", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("owned_partitions", TopicPartition, Versions(1, LAST), (), array=True, ignorable=True),
        Field("generation_id", "int32", Versions(2, LAST), -1, ignorable=True),
        Field("rack_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST), ignorable=True),
    )

    def __init__(
        self,
        topics: list[str] = UNSET,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = UNSET,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is UNSET else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id

