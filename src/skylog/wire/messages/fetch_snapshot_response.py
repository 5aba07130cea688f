"""Generated from FetchSnapshotResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.buffers import Buffer
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class SnapshotId(Struct):
    __slots__ = ("end_offset", "epoch",)
    FIELDS = (
        Field("end_offset", "int64", Versions(0, LAST), 0),
        Field("epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch",)
    FIELDS = (
        Field("leader_id", "int32", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionSnapshot(Struct):
    __slots__ = ("index", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records",)
    FIELDS = (
        Field("index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("snapshot_id", SnapshotId, Versions(0, LAST), ...),
        Field("current_leader", LeaderIdAndEpoch, Versions(0, LAST), ..., tag=0, tagged=Versions(0, LAST)),
        Field("size", "int64", Versions(0, LAST), 0),
        Field("position", "int64", Versions(0, LAST), 0),
        Field("unaligned_records", "records", Versions(0, LAST), None),
    )

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: SnapshotId = UNSET,
        current_leader: LeaderIdAndEpoch = UNSET,
        size: int = 0,
        position: int = 0,
        unaligned_records: Buffer | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.snapshot_id = SnapshotId() if snapshot_id is UNSET else snapshot_id
        self.current_leader = LeaderIdAndEpoch() if current_leader is UNSET else current_leader
        self.size = size
        self.position = position
        self.unaligned_records = unaligned_records


class TopicSnapshot(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", PartitionSnapshot, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionSnapshot] = UNSET,
    ) -> None:
        self.name = name
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


class FetchSnapshotResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints",)
    TYPE = "response"
    API_KEY = 59
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("topics", TopicSnapshot, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(1, LAST), (), array=True, tag=0, tagged=Versions(1, LAST)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[TopicSnapshot] = UNSET,
        node_endpoints: list[NodeEndpoint] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints

