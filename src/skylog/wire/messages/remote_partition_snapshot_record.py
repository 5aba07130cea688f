"""Generated from RemotePartitionSnapshotRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class LogStart(Struct):
    __slots__ = ("leader_epoch", "offset",)
    FIELDS = (
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset


class HighestOffset(Struct):
    __slots__ = ("leader_epoch", "offset",)
    FIELDS = (
        Field("leader_epoch", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset


class RemotePartitionSnapshotRecord(Message):
    __slots__ = ("topic_id", "partition_index", "topic", "metadata_offset", "fence", "log_starts", "delete_state", "highest_offsets", "segment_count",)
    TYPE = "remote-log-record"
    API_KEY = 500
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("topic", "string", Versions(0, LAST), ""),
        Field("metadata_offset", "int64", Versions(0, LAST), 0),
        Field("fence", "int32", Versions(0, LAST), -1),
        Field("log_starts", LogStart, Versions(0, LAST), (), array=True),
        Field("delete_state", "int8", Versions(0, LAST), -1),
        Field("highest_offsets", HighestOffset, Versions(0, LAST), (), array=True),
        Field("segment_count", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        topic: str = "",
        metadata_offset: int = 0,
        fence: int = -1,
        log_starts: list[LogStart] = UNSET,
        delete_state: int = -1,
        highest_offsets: list[HighestOffset] = UNSET,
        segment_count: int = 0,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.topic = topic
        self.metadata_offset = metadata_offset
        self.fence = fence
        self.log_starts = [] if log_starts is UNSET else log_starts
        self.delete_state = delete_state
        self.highest_offsets = [] if highest_offsets is UNSET else highest_offsets
        self.segment_count = segment_count

