"""Generated from BeginQuorumEpochRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionData(Struct):
    __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, ignorable=True),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.voter_directory_id = voter_directory_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


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


class LeaderEndpoint(Struct):
    __slots__ = ("name", "host", "port",)
    FIELDS = (
        Field("name", "string", Versions(1, LAST), ""),
        Field("host", "string", Versions(1, LAST), ""),
        Field("port", "uint16", Versions(1, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class BeginQuorumEpochRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints",)
    TYPE = "request"
    API_KEY = 53
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("voter_id", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("leader_endpoints", LeaderEndpoint, Versions(1, LAST), (), array=True, ignorable=True),
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[TopicData] = UNSET,
        leader_endpoints: list[LeaderEndpoint] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is UNSET else topics
        self.leader_endpoints = [] if leader_endpoints is UNSET else leader_endpoints

