"""Generated from Kafka's VoteRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: Uuid = ZERO_UUID
    voter_directory_id: Uuid = ZERO_UUID
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("replica_epoch", "int32", Versions(0, LAST), 0),
        Field("replica_id", "int32", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, ignorable=True),
        Field("voter_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, ignorable=True),
        Field("last_offset_epoch", "int32", Versions(0, LAST), 0),
        Field("last_offset", "int64", Versions(0, LAST), 0),
        Field("pre_vote", "bool", Versions(2, LAST), False),
    )


@dataclass(slots=True)
class TopicData(Struct):
    topic_name: str = ""
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class VoteRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[TopicData] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 52
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("voter_id", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )

