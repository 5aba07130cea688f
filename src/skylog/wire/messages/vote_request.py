"""Generated from VoteRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionData(Struct):
    __slots__ = ("partition_index", "replica_epoch", "replica_id", "replica_directory_id", "voter_directory_id", "last_offset_epoch", "last_offset", "pre_vote",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("replica_epoch", "int32", Versions(0, LAST), 0),
        Field("replica_id", "int32", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, ignorable=True),
        Field("voter_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, ignorable=True),
        Field("last_offset_epoch", "int32", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("pre_vote", "bool", Versions(2, LAST), False),
    )

    def __init__(
        self,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        voter_directory_id: Uuid = ZERO_UUID,
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] = UNSET,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is UNSET else partitions


class VoteRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "topics",)
    TYPE = "request"
    API_KEY = 52
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("voter_id", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[TopicData] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is UNSET else topics

