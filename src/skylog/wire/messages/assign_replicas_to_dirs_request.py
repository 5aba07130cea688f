"""Generated from Kafka's AssignReplicasToDirsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class TopicData(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DirectoryData(Struct):
    id: Uuid = ZERO_UUID
    topics: list[TopicData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("topics", TopicData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AssignReplicasToDirsRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[DirectoryData] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 73
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
        Field("directories", DirectoryData, Versions(0, LAST), (), array=True),
    )

