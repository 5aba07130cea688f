"""Generated from FetchSnapshotRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
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


class PartitionSnapshot(Struct):
    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id",)
    FIELDS = (
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("current_leader_epoch", "int32", Versions(0, LAST), 0),
        Field("snapshot_id", SnapshotId, Versions(0, LAST), ...),
        Field("position", "int64", Versions(0, LAST), 0),
        Field("replica_directory_id", "uuid", Versions(1, LAST), ZERO_UUID, tag=0, tagged=Versions(1, LAST), ignorable=True),
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: SnapshotId = UNSET,
        position: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.snapshot_id = SnapshotId() if snapshot_id is UNSET else snapshot_id
        self.position = position
        self.replica_directory_id = replica_directory_id


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


class FetchSnapshotRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics",)
    TYPE = "request"
    API_KEY = 59
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("cluster_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
        Field("replica_id", "int32", Versions(0, LAST), -1),
        Field("max_bytes", "int32", Versions(0, LAST), 2147483647),
        Field("topics", TopicSnapshot, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[TopicSnapshot] = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is UNSET else topics

