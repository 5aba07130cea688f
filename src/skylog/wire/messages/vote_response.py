"""Generated from VoteResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("vote_granted", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.vote_granted = vote_granted


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


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port",)
    FIELDS = (
        Field("node_id", "int32", Versions(1, LAST), 0),
        Field("host", "string", Versions(1, LAST), ""),
        Field("port", "uint16", Versions(1, LAST), 0),
    )

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port


class VoteResponse(Message):
    __slots__ = ("error_code", "topics", "node_endpoints",)
    TYPE = "response"
    API_KEY = 52
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(1, LAST), (), array=True, tag=0, tagged=Versions(1, LAST)),
    )

    def __init__(
        self,
        error_code: int = 0,
        topics: list[TopicData] = UNSET,
        node_endpoints: list[NodeEndpoint] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints

