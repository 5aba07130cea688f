"""Generated from WriteShareGroupStateRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class StateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count",)
    FIELDS = (
        Field("first_offset", "int64", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("delivery_state", "int8", Versions(0, LAST), 0),
        Field("delivery_count", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class PartitionData(Struct):
    __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("state_epoch", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("start_offset", "int64", Versions(0, LAST), 0),
        Field("delivery_complete_count", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("state_batches", StateBatch, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] = UNSET,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is UNSET else state_batches


class WriteStateData(Struct):
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


class WriteShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics",)
    TYPE = "request"
    API_KEY = 85
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("topics", WriteStateData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[WriteStateData] = UNSET,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics

