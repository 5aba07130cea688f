"""Generated from Kafka's FetchRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ReplicaState(Struct):
    replica_id: int = -1
    replica_epoch: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", Versions(15, LAST), -1),
        Field("replica_epoch", "int64", Versions(15, LAST), -1),
    )


@dataclass(slots=True)
class FetchPartition(Struct):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: Uuid = ZERO_UUID
    high_watermark: int = 9223372036854775807
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(9, LAST), -1, ignorable=True),
        Field("fetch_offset", "int64", Versions(0, LAST), 0),
        Field("last_fetched_epoch", "int32", Versions(12, LAST), -1),
        Field("log_start_offset", "int64", Versions(5, LAST), -1, ignorable=True),
        Field("partition_max_bytes", "int32", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(17, LAST), ZERO_UUID, tag=0, tagged=Versions(17, LAST), ignorable=True),
        Field("high_watermark", "int64", Versions(18, LAST), 9223372036854775807, tag=1, tagged=Versions(18, LAST), ignorable=True),
    )


@dataclass(slots=True)
class FetchTopic(Struct):
    topic: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", FetchPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ForgottenTopic(Struct):
    topic: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(7, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", "int32", Versions(7, LAST), (), array=True),
    )


@dataclass(slots=True)
class FetchRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = field(default_factory=lambda: ReplicaState())
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)
    rack_id: str = ""
    TYPE = "request"
    API_KEY = 1
    VERSIONS = Versions(4, 18)
    FLEXIBLE = Versions(12, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
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

