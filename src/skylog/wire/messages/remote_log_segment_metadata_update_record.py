"""Generated from RemoteLogSegmentMetadataUpdateRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicIdPartitionEntry(Struct):
    __slots__ = ("name", "id", "partition",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.name = name
        self.id = id
        self.partition = partition


class RemoteLogSegmentIdEntry(Struct):
    __slots__ = ("topic_id_partition", "id",)
    FIELDS = (
        Field("topic_id_partition", TopicIdPartitionEntry, Versions(0, LAST), ...),
        Field("id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        topic_id_partition: TopicIdPartitionEntry = UNSET,
        id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id_partition = TopicIdPartitionEntry() if topic_id_partition is UNSET else topic_id_partition
        self.id = id


class RemoteLogSegmentMetadataUpdateRecord(Message):
    __slots__ = ("remote_log_segment_id", "broker_id", "event_timestamp_ms", "custom_metadata", "remote_log_segment_state", "copier_epoch", "log_start_offset",)
    TYPE = "remote-log-record"
    API_KEY = 1
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("remote_log_segment_id", RemoteLogSegmentIdEntry, Versions(0, LAST), ...),
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("event_timestamp_ms", "int64", Versions(0, LAST), 0),
        Field("custom_metadata", "bytes", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("remote_log_segment_state", "int8", Versions(0, LAST), 0),
        Field("copier_epoch", "int32", Versions(0, LAST), -1, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("log_start_offset", "int64", Versions(0, LAST), -1, tag=10001, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        remote_log_segment_id: RemoteLogSegmentIdEntry = UNSET,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        copier_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentIdEntry() if remote_log_segment_id is UNSET else remote_log_segment_id
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.copier_epoch = copier_epoch
        self.log_start_offset = log_start_offset

