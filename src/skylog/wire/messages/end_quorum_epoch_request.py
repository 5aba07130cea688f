"""Generated from EndQuorumEpochRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ReplicaInfo(Struct):
    __slots__ = ("candidate_id", "candidate_directory_id",)
    FIELDS = (
        Field("candidate_id", "int32", Versions(1, LAST), 0),
        Field("candidate_directory_id", "uuid", Versions(1, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        candidate_id: int = 0,
        candidate_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.candidate_id = candidate_id
        self.candidate_directory_id = candidate_directory_id


class PartitionData(Struct):
    __slots__ = ("partition_index", "leader_id", "leader_epoch", "preferred_successors", "preferred_candidates",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("preferred_successors", "int32", Versions(0, 0), (), array=True, ignorable=True),
        Field("preferred_candidates", ReplicaInfo, Versions(1, LAST), (), array=True, ignorable=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_successors: list[int] = UNSET,
        preferred_candidates: list[ReplicaInfo] = UNSET,
    ) -> None:
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.preferred_successors = [] if preferred_successors is UNSET else preferred_successors
        self.preferred_candidates = [] if preferred_candidates is UNSET else preferred_candidates


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


class EndQuorumEpochRequest(Message):
    __slots__ = ("cluster_id", "topics", "leader_endpoints",)
    TYPE = "request"
    API_KEY = 54
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("leader_endpoints", LeaderEndpoint, Versions(1, LAST), (), array=True, ignorable=True),
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        topics: list[TopicData] = UNSET,
        leader_endpoints: list[LeaderEndpoint] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is UNSET else topics
        self.leader_endpoints = [] if leader_endpoints is UNSET else leader_endpoints

