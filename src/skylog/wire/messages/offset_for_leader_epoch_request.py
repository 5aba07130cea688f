"""Generated from OffsetForLeaderEpochRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class OffsetForLeaderPartition(Struct):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(2, LAST), -1, ignorable=True),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Struct):
    __slots__ = ("topic", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", OffsetForLeaderPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = UNSET,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is UNSET else partitions


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics",)
    TYPE = "request"
    API_KEY = 23
    VERSIONS = Versions(2, 4)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("replica_id", "int32", Versions(3, LAST), -2, ignorable=True),
        Field("topics", OffsetForLeaderTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = UNSET,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is UNSET else topics

