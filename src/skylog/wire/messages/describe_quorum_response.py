"""Generated from DescribeQuorumResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ReplicaState(Struct):
    __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp",)
    FIELDS = (
        Field("replica_id", "int32", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(2, LAST), ZERO_UUID),
        Field("log_end_offset", "int64", Versions(0, LAST), 0),
        Field("last_fetch_timestamp", "int64", Versions(1, LAST), -1, ignorable=True),
        Field("last_caught_up_timestamp", "int64", Versions(1, LAST), -1, ignorable=True),
    )

    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark", "current_voters", "observers",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(2, LAST), "", nullable=Versions(2, LAST), ignorable=True),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("high_watermark", "int64", Versions(0, LAST), 0),
        Field("current_voters", ReplicaState, Versions(0, LAST), (), array=True),
        Field("observers", ReplicaState, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = UNSET,
        observers: list[ReplicaState] = UNSET,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is UNSET else current_voters
        self.observers = [] if observers is UNSET else observers


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


class Listener(Struct):
    __slots__ = ("name", "host", "port",)
    FIELDS = (
        Field("name", "string", Versions(2, LAST), ""),
        Field("host", "string", Versions(2, LAST), ""),
        Field("port", "uint16", Versions(2, LAST), 0),
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


class Node(Struct):
    __slots__ = ("node_id", "listeners",)
    FIELDS = (
        Field("node_id", "int32", Versions(2, LAST), 0),
        Field("listeners", Listener, Versions(2, LAST), (), array=True),
    )

    def __init__(
        self,
        node_id: int = 0,
        listeners: list[Listener] = UNSET,
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is UNSET else listeners


class DescribeQuorumResponse(Message):
    __slots__ = ("error_code", "error_message", "topics", "nodes",)
    TYPE = "response"
    API_KEY = 55
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(2, LAST), "", nullable=Versions(2, LAST), ignorable=True),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
        Field("nodes", Node, Versions(2, LAST), (), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[TopicData] = UNSET,
        nodes: list[Node] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is UNSET else topics
        self.nodes = [] if nodes is UNSET else nodes

