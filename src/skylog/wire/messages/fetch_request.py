"""Generated from FetchRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ReplicaState(Struct):
    __slots__ = ("replica_id", "replica_epoch",)
    FIELDS = (
        Field("replica_id", "int32", Versions(15, LAST), -1),
        Field("replica_epoch", "int64", Versions(15, LAST), -1),
    )

    def __init__(
        self,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(Struct):
    __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(9, LAST), -1, ignorable=True),
        Field("fetch_offset", "int64", Versions(0, LAST), 0),
        Field("last_fetched_epoch", "int32", Versions(12, LAST), -1),
        Field("log_start_offset", "int64", Versions(5, LAST), -1, ignorable=True),
        Field("partition_max_bytes", "int32", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(17, LAST), ZERO_UUID, tag=0, tagged=Versions(17, LAST), ignorable=True),
        Field("high_watermark", "int64", Versions(18, LAST), 9223372036854775807, tag=1, tagged=Versions(18, LAST), ignorable=True),
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", FetchPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[FetchPartition] = UNSET,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class ForgottenTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(7, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", "int32", Versions(7, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class FetchRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id",)
    TYPE = "request"
    API_KEY = 1
    VERSIONS = Versions(4, 18)
    FLEXIBLE = Versions(12, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("cluster_id", "string", Versions(12, LAST), None, nullable=Versions(12, LAST), tag=0, tagged=Versions(12, LAST), ignorable=True),
        Field("replica_id", "int32", Versions(0, 14), -1),
        Field("replica_state", ReplicaState, Versions(15, LAST), ..., tag=1, tagged=Versions(15, LAST)),
        Field("max_wait_ms", "int32", Versions(0, LAST), 0),
        Field("min_bytes", "int32", Versions(0, LAST), 0),
        Field("max_bytes", "int32", Versions(3, LAST), 2147483647, ignorable=True),
        Field("isolation_level", "int8", Versions(4, LAST), 0, ignorable=True),
        Field("session_id", "int32", Versions(7, LAST), 0, ignorable=True),
        Field("session_epoch", "int32", Versions(7, LAST), -1, ignorable=True),
        Field("topics", FetchTopic, Versions(0, LAST), (), array=True),
        Field("forgotten_topics_data", ForgottenTopic, Versions(7, LAST), (), array=True),
        Field("rack_id", "string", Versions(11, LAST), "", ignorable=True),
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState = UNSET,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = UNSET,
        forgotten_topics_data: list[ForgottenTopic] = UNSET,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = ReplicaState() if replica_state is UNSET else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is UNSET else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is UNSET else forgotten_topics_data
        self.rack_id = rack_id

