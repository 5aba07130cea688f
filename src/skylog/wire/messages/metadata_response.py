"""Generated from MetadataResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class MetadataResponseBroker(Struct):
    __slots__ = ("node_id", "host", "port", "rack",)
    FIELDS = (
        Field("node_id", "int32", Versions(0, LAST), 0),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
        Field("rack", "string", Versions(1, LAST), None, nullable=Versions(1, LAST), ignorable=True),
    )

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Struct):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas", "preferred_produce_brokers",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(7, LAST), -1, ignorable=True),
        Field("replica_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("isr_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("offline_replicas", "int32", Versions(5, LAST), (), array=True, ignorable=True),
        Field("preferred_produce_brokers", "int32", Versions(9, LAST), (), array=True, tag=10000, tagged=Versions(9, LAST), ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = UNSET,
        isr_nodes: list[int] = UNSET,
        offline_replicas: list[int] = UNSET,
        preferred_produce_brokers: list[int] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is UNSET else replica_nodes
        self.isr_nodes = [] if isr_nodes is UNSET else isr_nodes
        self.offline_replicas = [] if offline_replicas is UNSET else offline_replicas
        self.preferred_produce_brokers = [] if preferred_produce_brokers is UNSET else preferred_produce_brokers


class MetadataResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(12, LAST)),
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("is_internal", "bool", Versions(1, LAST), False, ignorable=True),
        Field("partitions", MetadataResponsePartition, Versions(0, LAST), (), array=True),
        Field("topic_authorized_operations", "int32", Versions(8, LAST), -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: Uuid = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = UNSET,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is UNSET else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Message):
    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code",)
    TYPE = "response"
    API_KEY = 3
    VERSIONS = Versions(0, 13)
    FLEXIBLE = Versions(9, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(3, LAST), 0, ignorable=True),
        Field("brokers", MetadataResponseBroker, Versions(0, LAST), (), array=True),
        Field("cluster_id", "string", Versions(2, LAST), None, nullable=Versions(2, LAST), ignorable=True),
        Field("controller_id", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("topics", MetadataResponseTopic, Versions(0, LAST), (), array=True),
        Field("cluster_authorized_operations", "int32", Versions(8, 10), -2147483648),
        Field("error_code", "int16", Versions(13, LAST), 0, ignorable=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = UNSET,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = UNSET,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is UNSET else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is UNSET else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code

