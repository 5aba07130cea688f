"""Generated from Kafka's FetchSnapshotResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.buffers import Buffer
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
class LeaderIdAndEpoch(Struct):
    leader_id: int = 0
    leader_epoch: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class PartitionSnapshot(Struct):
    index: int = 0
    error_code: int = 0
    snapshot_id: SnapshotId = field(default_factory=lambda: SnapshotId())
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())
    size: int = 0
    position: int = 0
    unaligned_records: Buffer | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("snapshot_id", SnapshotId, Versions(0, LAST), ...),
        Field("current_leader", LeaderIdAndEpoch, Versions(0, LAST), ..., tag=0, tagged=Versions(0, LAST)),
        Field("size", "int64", Versions(0, LAST), 0),
        Field("position", "int64", Versions(0, LAST), 0),
        Field("unaligned_records", "records", Versions(0, LAST), None),
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
class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(1, LAST), 0),
        Field("host", "string", Versions(1, LAST), ""),
        Field("port", "uint16", Versions(1, LAST), 0),
    )


@dataclass(slots=True)
class FetchSnapshotResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[TopicSnapshot] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 59
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("topics", TopicSnapshot, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(1, LAST), (), array=True, tag=0, tagged=Versions(1, LAST)),
    )

