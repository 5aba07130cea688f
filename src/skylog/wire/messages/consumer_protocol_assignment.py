"""Generated from ConsumerProtocolAssignment.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, NEVER, UNSET, Field, Message, Struct, Versions


class TopicPartition(Struct):
    __slots__ = ("topic", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is UNSET else partitions


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data",)
    TYPE = "data"
    VERSIONS = Versions(0, 3)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("assigned_partitions", TopicPartition, Versions(0, LAST), (), array=True),
        Field("user_data", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        assigned_partitions: list[TopicPartition] = UNSET,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.user_data = user_data

