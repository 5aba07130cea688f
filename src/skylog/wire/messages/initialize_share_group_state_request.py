"""Generated from InitializeShareGroupStateRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionData(Struct):
    __slots__ = ("partition", "state_epoch", "start_offset",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("state_epoch", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset


class InitializeStateData(Struct):
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


class InitializeShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics",)
    TYPE = "request"
    API_KEY = 83
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", InitializeStateData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[InitializeStateData] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics

