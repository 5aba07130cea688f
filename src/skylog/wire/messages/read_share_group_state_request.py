"""Generated from ReadShareGroupStateRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionData(Struct):
    __slots__ = ("partition", "leader_epoch",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class ReadStateData(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionData] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class ReadShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics",)
    TYPE = "request"
    API_KEY = 84
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", ReadStateData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[ReadStateData] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics

