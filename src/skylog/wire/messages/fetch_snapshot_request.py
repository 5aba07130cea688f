"""Generated from Kafka's FetchSnapshotRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class SnapshotId(Struct):
    end_offset: int = 0
    epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("epoch", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class PartitionSnapshot(Struct):
    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: SnapshotId = field(default_factory=lambda: SnapshotId())
    position: int = 0
    replica_directory_id: Uuid = ZERO_UUID
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(0, LAST), 0),
        Field("snapshot_id", SnapshotId, Versions(0, LAST), ...),
        Field("position", "int64", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, tag=0, tagged=Versions(1, LAST), ignorable=True),
    )


@dataclass(slots=True)
class TopicSnapshot(Struct):
    name: str = ""
    partitions: list[PartitionSnapshot] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionSnapshot, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class FetchSnapshotRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: list[TopicSnapshot] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 59
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
        Field("replica_id", "int32", Versions(0, LAST), -1),
        Field("max_bytes", "int32", Versions(0, LAST), 2147483647),
        Field("topics", TopicSnapshot, Versions(0, LAST), (), array=True),
    )

