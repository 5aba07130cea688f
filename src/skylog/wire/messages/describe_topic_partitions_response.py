"""Generated from DescribeTopicPartitionsResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribeTopicPartitionsResponsePartition(Struct):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), -1, ignorable=True),
        Field("replica_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("isr_nodes", "int32", Versions(0, LAST), (), array=True),
        Field("eligible_leader_replicas", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("last_known_elr", "int32", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("offline_replicas", "int32", Versions(0, LAST), (), array=True, ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = UNSET,
        isr_nodes: list[int] = UNSET,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is UNSET else replica_nodes
        self.isr_nodes = [] if isr_nodes is UNSET else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is UNSET else offline_replicas


class DescribeTopicPartitionsResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID, ignorable=True),
        Field("is_internal", "bool", Versions(0, LAST), False, ignorable=True),
        Field("partitions", DescribeTopicPartitionsResponsePartition, Versions(0, LAST), (), array=True),
        Field("topic_authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: Uuid = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = UNSET,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is UNSET else partitions
        self.topic_authorized_operations = topic_authorized_operations


class Cursor(Struct):
    __slots__ = ("topic_name", "partition_index",)
    FIELDS = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor",)
    TYPE = "response"
    API_KEY = 75
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("topics", DescribeTopicPartitionsResponseTopic, Versions(0, LAST), (), array=True),
        Field("next_cursor", Cursor, Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = UNSET,
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.next_cursor = next_cursor

